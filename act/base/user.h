/* user.h - names and home folders of user ids.
 *
 * In a static program getpwuid() would load modules of the very same glibc, which the machine may not have. So
 * /etc/passwd is read, then `getent` is asked, which also knows the users of LDAP and SSSD. */
#ifndef ACT_BASE_USER_H
#define ACT_BASE_USER_H

#include <sys/types.h>

/* The login name, or the number if it has none. New string. */
char *act_user_name(uid_t uid);
/* The home folder, or NULL if it is not known. New string. */
char *act_user_home(uid_t uid);

#endif
