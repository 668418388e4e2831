/* temp_dir.h - a folder for the tests of one program: dir, from make_dir() to remove_dir(), which are set-up and
 * tear-down. */
#ifndef TESTS_UNIT_TEMP_DIR_H
#define TESTS_UNIT_TEMP_DIR_H

#include "unit/test.h"

#include "base/file.h"
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

#endif
