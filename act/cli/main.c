/* main.c - the program act, or a. */
#include <signal.h>

#include "cli/cli.h"
#include "codec/json.h"
#include "proc/proc.h"

int main(int argc, char **argv)
{
    signal(SIGCHLD, SIG_DFL); /* whoever started this may ignore it, and nobody could tell then how a child ended */
    proc_hide();              /* keys, tokens, and what the environment of runs holds */
    codec_json_wipe_memory();
    return cli_main(argc, argv);
}
