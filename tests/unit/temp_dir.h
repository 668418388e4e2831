/* temp_dir.h - a folder for the tests of one program: dir, from make_dir() to remove_dir(), which are set-up and
 * tear-down. */
#ifndef TESTS_UNIT_TEMP_DIR_H
#define TESTS_UNIT_TEMP_DIR_H

#include "unit/test.h"

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"

static char *dir;

static int make_dir(void **state)
{
    (void)state;
    dir = act_strdup("/tmp/act-test.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    int rc = act_remove_tree(dir, &err);
    free(dir);
    return rc;
}

/* Returns the path of a name in that folder. New string. */
__attribute__((unused)) static char *test_path(const char *name)
{
    return act_path_join(dir, name);
}

/* Writes a file of that folder, and makes the folders above it. */
__attribute__((unused)) static void test_write(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = test_path(name);

    assert_ok(act_file_write(path, text, strlen(text), 0600, &err), err);
}

/* Returns the text of a file of that folder. New string. */
__attribute__((unused)) static char *test_read(const char *name)
{
    ACT_AUTOFREE char *path = test_path(name);
    char *text = NULL;

    assert_ok(act_file_read(path, 1 << 20, &text, NULL, &err), err);
    return text;
}

#endif
