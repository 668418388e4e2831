/* static.c - only in the static program: stubs for functions that libraries refer to but never need here, and that
 * glibc can provide only by loading shared libraries of exactly its version, which another machine does not have. Each
 * reports that there is nothing; host names are resolved by c-ares, extensions are never loaded. */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

/* OpenSSL's BIO_lookup_ex(): libcurl connects its sockets itself. */
int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result)
{
    (void)node;
    (void)service;
    (void)hints;
    *result = NULL;
    return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *list)
{
    (void)list;
}

const char *gai_strerror(int code)
{
    (void)code;
    return "names are not looked up here";
}

int getnameinfo(const struct sockaddr *restrict address, socklen_t address_len, char *restrict host, socklen_t host_len,
                char *restrict service, socklen_t service_len, int flags)
{
    (void)address;
    (void)address_len;
    (void)host;
    (void)host_len;
    (void)service;
    (void)service_len;
    (void)flags;
    return EAI_FAIL;
}

struct hostent *gethostbyname(const char *name)
{
    (void)name;
    h_errno = NO_RECOVERY;
    return NULL;
}

/* c-ares: ports are numbers here. */
struct servent *getservbyname(const char *name, const char *protocol)
{
    (void)name;
    (void)protocol;
    return NULL;
}

int getservbyport_r(int port, const char *restrict protocol, struct servent *restrict room, char *restrict buffer,
                    size_t len, struct servent **restrict result)
{
    (void)port;
    (void)protocol;
    (void)room;
    (void)buffer;
    (void)len;
    *result = NULL;
    return ENOENT;
}

/* SQLite's extensions, OpenSSL's engines and providers. The linker redirects dlopen() here; glibc keeps its own for
 * itself. */
void *__wrap_dlopen(const char *file, int mode);
void *__wrap_dlopen(const char *file, int mode)
{
    (void)file;
    (void)mode;
    return NULL;
}

void *dlsym(void *restrict library, const char *restrict name)
{
    (void)library;
    (void)name;
    return NULL;
}

int dlclose(void *library)
{
    (void)library;
    return -1;
}

int dladdr(const void *address, Dl_info *out)
{
    (void)address;
    (void)out;
    return 0;
}

char *dlerror(void)
{
    static char text[] = "a static program loads no libraries";

    return text;
}
