#include "base/user.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"

enum { ENTRY_MAX = 16 << 10 };

/* A user's line of passwd(5). As with getpwuid_r(), the texts are in room. */
struct user_entry {
    struct passwd pw;
    char room[ENTRY_MAX];
};

static bool user_find_in(FILE *from, uid_t uid, struct user_entry *out)
{
    struct passwd *found = NULL;

    while (fgetpwent_r(from, &out->pw, out->room, sizeof(out->room), &found) == 0)
        if (found->pw_uid == uid)
            return true;
    return false;
}

static bool in_passwd_file(uid_t uid, struct user_entry *out)
{
    FILE *file = fopen("/etc/passwd", "re");
    bool found = file && user_find_in(file, uid, out);

    if (file)
        fclose(file);
    return found;
}

static bool from_getent(uid_t uid, struct user_entry *out)
{
    ACT_AUTOFREE char *command = act_sprintf("getent passwd %u 2>/dev/null", (unsigned)uid);
    FILE *answer = popen(command, "re");
    bool found = answer && user_find_in(answer, uid, out);

    if (answer)
        pclose(answer);
    return found;
}

static bool find_user(uid_t uid, struct user_entry *out)
{
    return in_passwd_file(uid, out) || from_getent(uid, out);
}

char *act_user_name(uid_t uid)
{
    struct user_entry user;

    return find_user(uid, &user) ? act_strdup(user.pw.pw_name) : act_sprintf("%u", (unsigned)uid);
}

char *act_user_home(uid_t uid)
{
    struct user_entry user;

    return find_user(uid, &user) ? act_strdup(user.pw.pw_dir) : NULL;
}
