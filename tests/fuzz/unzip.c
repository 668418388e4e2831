/* Zip files that are unpacked where links lead out, twice: nothing outside of the folder changes. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "node/unzip.h"

/* What is outside: names, modes, sizes and changes, also of the folders themselves. New string. */
static char *fuzz_unzip_look(const char *outside)
{
    struct act_buf text = {0};
    struct dirent **v = NULL;
    struct stat st;
    int n = scandir(outside, &v, NULL, alphasort), fd = open(outside, O_RDONLY | O_CLOEXEC);

    for (int i = 0; i < n; free(v[i++]))
        if (fstatat(fd, v[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            act_buf_addf(&text, "%s %o %ld %ld %ld\n", v[i]->d_name, st.st_mode, (long)st.st_size, st.st_mtim.tv_nsec,
                         st.st_ctim.tv_nsec);
    close(fd);
    free(v);
    return act_buf_steal(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *zip = fuzz_file(dir, "input.zip", data, size);
    ACT_AUTOFREE char *kept = fuzz_file(dir, "outside/kept", "kept", 4);
    ACT_AUTOFREE char *outside = act_path_dirname(kept);
    ACT_AUTOFREE char *target = act_path_join(dir, "target");
    ACT_AUTOFREE char *link = act_path_join(target, "l");
    struct act_error err;

    FUZZ_CHECK(mkdir(target, 0700) == 0 && symlink("../outside", link) == 0);
    ACT_AUTOFREE char *before = fuzz_unzip_look(outside);
    for (int i = 0; i < 2; i++) { /* the second time its own links are there, too */
        (void)!node_unzip(zip, NULL, target, true, &err);
        ACT_AUTOFREE char *after = fuzz_unzip_look(outside);
        FUZZ_CHECK(strcmp(before, after) == 0);
    }
    FUZZ_CHECK(act_remove_tree(target, &err) == 0);
    return 0;
}
