/* main.c - the program act, or a. */
#include "cli/cli.h"
#include "codec/json.h"
#include "proc/proc.h"

int main(int argc, char **argv)
{
    proc_hide(); /* keys, tokens, and what the environment of runs holds */
    codec_json_wipe_memory();
    return cli_main(argc, argv);
}
