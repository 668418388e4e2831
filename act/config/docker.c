/* docker.c - the names of images and of their registries, as docker has them. */
#include <string.h>

#include "config/config.h"

bool config_is_docker_hub(const char *host)
{
    static const char *const names[] = {"docker.io", "index.docker.io", "registry-1.docker.io"};
    size_t n = strcspn(host, "/");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == n && strncmp(host, names[i], n) == 0)
            return true;
    return false;
}

char *config_image_registry(const char *image)
{
    size_t n = strcspn(image, "/");
    char *host = act_strndup(image, n);

    if (image[n] && (strpbrk(host, ".:") || strcmp(host, "localhost") == 0))
        return host;
    free(host);
    return NULL;
}

char *config_docker_registry(const struct config_docker *d)
{
    const char *address = d->address ? d->address : "", *scheme = strstr(address, "://");
    const char *host = scheme ? scheme + 3 : address;
    size_t n = strlen(host);

    while (n && host[n - 1] == '/')
        n--;
    if (n)
        return act_strndup(host, n);
    char *named = config_image_registry(d->image);
    return named ? named : act_strdup("docker.io");
}

char *config_docker_image(const struct config_docker *docker)
{
    ACT_AUTOFREE char *registry = config_docker_registry(docker);
    size_t n = strlen(registry);

    if (config_is_docker_hub(registry) || (strncmp(docker->image, registry, n) == 0 && docker->image[n] == '/'))
        return act_strdup(docker->image);
    return act_sprintf("%s/%s", registry, docker->image);
}
