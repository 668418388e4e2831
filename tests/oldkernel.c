/* oldkernel COMMAND...: runs it as if the kernel were Linux 4.18: the system calls of later ones answer ENOSYS, to it
 * and to all that it starts. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IS(number)                                                                                                     \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

int main(int argc, char **argv)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        IS(SYS_pidfd_send_signal),       /* 5.1 */
        IS(SYS_io_uring_setup),          /* 5.1 */
        IS(SYS_pidfd_open),              /* 5.3 */
        IS(SYS_clone3),                  /* 5.3 */
        IS(SYS_copy_file_range),         /* between file systems: 5.3 */
        IS(SYS_openat2),                 /* 5.6 */
        IS(SYS_faccessat2),              /* 5.8 */
        IS(SYS_close_range),             /* 5.9 */
        IS(SYS_landlock_create_ruleset), /* 5.13 */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

    /* Root needs no such promise, and what it runs may look for one. */
    if (argc < 2 ||
        (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 &&
         (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0))) {
        fputs("usage: oldkernel COMMAND...\n", stderr);
        return 2;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
