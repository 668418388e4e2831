/* builtin.c - config/diagnosis.yaml, as it is, as part of the program. */
#include "diagnose/diagnose_internal.h"

__asm__(".pushsection .rodata\n"
        ".global diagnose_builtin\n"
        ".global diagnose_builtin_end\n"
        "diagnose_builtin:\n"
        ".incbin \"" DIAGNOSE_RULES "\"\n"
        "diagnose_builtin_end:\n"
        ".byte 0\n"
        ".popsection\n");
