/* asan.c - what AddressSanitizer does unless ASAN_OPTIONS says otherwise, in the programs that are built with it */

const char *__asan_default_options(void); /* sanitizer/asan_interface.h, which not every compiler brings */

/* UBSan ends a program by a trap (cmake/ActCompiler.cmake): the trace tells where. */
const char *__asan_default_options(void)
{
    return "handle_sigill=1";
}
