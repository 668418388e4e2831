/* leaks.c - a program that leaks: the options of the sanitizers that tests use must let LeakSanitizer see it. */
#include <stdlib.h>

static void *volatile held;

int main(void)
{
    held = malloc(64);
    held = NULL;
    return held != NULL;
}
