/* main.c - the program act, or a. */
#include "cli/cli.h"
#include "proc/proc.h"

int main(int argc, char **argv)
{
    proc_hide(); /* keys, tokens, and what the environment of runs holds */
    return cli_main(argc, argv);
}
