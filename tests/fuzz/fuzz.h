/* fuzz.h - what the harnesses share: each file here is one parser of foreign bytes, as libFuzzer calls it.
 *
 * A harness gives the bytes to the parser, uses what comes out, and releases it. It must not remember anything from
 * one input to the next, and says with FUZZ_CHECK what must hold besides "the sanitizers say nothing".
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "codec/json.h"

int LLVMFuzzerInitialize(int *argc, char ***argv); /* of those that have to prepare something once */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "does not hold: %s\n", #what), abort()))

/* The bytes with a NUL where they end, so that whoever reads on is noticed. New string. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = act_alloc(size + 1);

    text[size] = '\0';
    return size ? memcpy(text, data, size) : text;
}

/* Takes the next line, or what is left of the text: "" at its end. */
static inline char *fuzz_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');

    *text = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

/* A new reference; NULL when the bytes are no JSON. */
static inline json_t *fuzz_json(const uint8_t *data, size_t size)
{
    json_t *json = NULL;

    return codec_json_parse((const char *)data, size, "input", &json, NULL) < 0 ? NULL : json;
}

/* A folder of this process below $TMPDIR. New string. */
static inline char *fuzz_dir(void)
{
    const char *temp = getenv("TMPDIR");
    char *dir = act_sprintf("%s/act-fuzz.%d", temp ? temp : "/tmp", (int)getpid());

    FUZZ_CHECK(act_mkdir_all(dir, 0700, NULL) == 0);
    return dir;
}

/* Puts the bytes into a file of that folder, whose name may be that of one further down. New string: its path. */
static inline char *fuzz_file(const char *dir, const char *name, const void *data, size_t size)
{
    char *path = act_sprintf("%s/%s", dir, name);

    FUZZ_CHECK(act_file_write(path, data, size, 0600, NULL) == 0);
    return path;
}

#endif
