/* request.h - which configuration is asked for, and what comes before its files. config.h has what becomes of it. */
#ifndef ACT_CONFIG_REQUEST_H
#define ACT_CONFIG_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

struct config_override {
    const char *key;   /* "num_gpu", "docker.image" */
    const char *value; /* YAML text; for a key that holds text, the text as it is */
    const char *flag;  /* "-n": named as origin */
};

struct config_request {
    const char *cluster;       /* -c NAME; NULL: the default one */
    const char *file;          /* absolute: this one, and no other is looked for; NULL: that of the cluster */
    const char *text;          /* with file: what it would hold; NULL: what it holds */
    const char *project;       /* with file: the project root; NULL: it follows from the file and start_dir */
    bool quiet;                /* nobody is warned */
    const char *start_dir;     /* looked up from here upwards; NULL: the current folder */
    const char *const *params; /* -p YAML texts, a NULL-ended list or NULL; later ones win */
    const struct config_override *overrides;
    size_t n_overrides;
};

#endif
