/* user.h - what the system knows of a user number.
 *
 * Not by getpwuid(): in a static program it would load modules of the very same glibc, which the machine need not have.
 * /etc/passwd is read, then `getent` asked, which knows the users of LDAP and SSSD too. */
#ifndef ACT_BASE_USER_H
#define ACT_BASE_USER_H

#include <sys/types.h>

/* The login name, a new string; the number where nobody knows it. */
char *act_user_name(uid_t uid);
/* The home directory, a new string; NULL where nobody knows it. */
char *act_user_home(uid_t uid);

#endif
