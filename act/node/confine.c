#include "node/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Constants missing from the headers of older systems. A right belongs to a version ("ABI") of Landlock; the kernel
 * refuses those of a later one. */
enum {
    ABI_REFER = 2,
    ABI_TRUNCATE = 3,
    ABI_NETWORK = 4,
    ABI_DEVICES = 5,
    ABI_SCOPES = 6,
};
#define FS_TRUNCATE (1ULL << 14)
#define FS_IOCTL    (1ULL << 15)
#define NET_ALL     (1ULL << 0 | 1ULL << 1) /* bind, connect */
#define SCOPE_ALL   (1ULL << 0 | 1ULL << 1) /* abstract sockets, signals */

#define FS_FIRST   (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1) /* all rights of the first version */
#define FS_IN_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define FS_IN_FOLDER                                                                                                   \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |                      \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |                         \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | FS_TRUNCATE)

/* The current struct landlock_ruleset_attr; an older kernel accepts members unknown to it if they are 0. */
struct ruleset {
    uint64_t fs, net, scopes;
};

/* Returns what is forbidden unless a rule allows it. */
static struct ruleset ruleset_of(int abi)
{
    struct ruleset r = {.fs = FS_FIRST};

    if (abi >= ABI_REFER)
        r.fs |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= ABI_TRUNCATE)
        r.fs |= FS_TRUNCATE;
    if (abi >= ABI_NETWORK)
        r.net = NET_ALL;
    if (abi >= ABI_DEVICES)
        r.fs |= FS_IOCTL;
    if (abi >= ABI_SCOPES)
        r.scopes = SCOPE_ALL;
    return r;
}

static bool allow(int ruleset, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = open(path, O_PATH | O_CLOEXEC)};

    if (rule.parent_fd < 0)
        return false;
    long rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
    return rc == 0;
}

bool confine_to(const char *folder, const char *file)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return false;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return false;
    struct ruleset wanted = ruleset_of((int)abi);
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &wanted, sizeof(wanted), 0);
    if (ruleset < 0)
        return false;
    bool held = allow(ruleset, folder, FS_IN_FOLDER & wanted.fs) && allow(ruleset, file, FS_IN_FILE) &&
                syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return held;
}
