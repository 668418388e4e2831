/* user.h - names and home folders of user ids.
 *
 * In a static program getpwuid() would load modules of the very same glibc, which the machine may not have. So these
 * read /etc/passwd, then ask `getent`, which also knows the users of LDAP and SSSD. */
#ifndef ACT_BASE_USER_H
#define ACT_BASE_USER_H

#include <sys/types.h>

/* Returns the login name of uid, or its number if it has none. New string. */
char *act_user_name(uid_t uid);
/* Returns the home folder of uid, a new string, or NULL if nobody knows it. */
char *act_user_home(uid_t uid);

#endif
