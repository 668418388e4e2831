/* module.c - what the environment of a run has near a module that the program misses. */
#include <string.h>

#include "flow/why/ranks.h"

enum { NEAR_MOST = 3, STEM_LEAST = 4 };

char *flow_missing_module(const char *line)
{
    static const char mark[] = "No module named ";
    const char *at = line ? strstr(line, mark) : NULL;

    if (!at)
        return NULL;
    at += strlen(mark) + strspn(at + strlen(mark), "'\"");
    size_t len = strcspn(at, "'\".;, \t\r\n"); /* of "a.b" it is the package of a that is missing */
    return len ? act_strndup(at, len) : NULL;
}

static size_t common_beginning(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Returns how near a package is to a module: 0 is not at all. */
static size_t nearness(const char *module, const char *package)
{
    const char *const one[] = {package, NULL};
    size_t n = common_beginning(module, package);

    if (strcmp(module, package) == 0 || act_nearest(module, one))
        return SIZE_MAX;
    return n >= STEM_LEAST && 2 * n >= strlen(module) ? n : 0;
}

struct near_package {
    const char *package; /* "torch==2.1.0" */
    size_t nearness;
};

/* Keeps the nearest ones, in order. */
static void near_insert(struct near_package *near, size_t *n, struct near_package found)
{
    size_t at = *n;

    for (; at > 0 && near[at - 1].nearness < found.nearness; at--)
        if (at < NEAR_MOST)
            near[at] = near[at - 1];
    if (at < NEAR_MOST)
        near[at] = found;
    *n += *n < NEAR_MOST;
}

static void module_add_near(struct act_buf *out, const char *package)
{
    size_t len = strcspn(package, "=");

    act_buf_addf(out, "%.*s %s", (int)len, package, package + len + strspn(package + len, "="));
}

void flow_note_near(const char *module, const struct run_environment *environment, struct act_strv *out)
{
    ACT_AUTOFREE char *wanted = run_package_name(module, strlen(module));
    struct near_package near[NEAR_MOST];
    ACT_AUTO(act_buf) text = {0};
    size_t n = 0;

    for (size_t i = 0; i < environment->packages.n; i++) {
        const char *package = environment->packages.v[i];
        ACT_AUTOFREE char *name = act_strndup(package, strcspn(package, "="));
        size_t how = nearness(wanted, name);
        if (how > 0)
            near_insert(near, &n, (struct near_package){package, how});
        if (strcmp(name, wanted) == 0) {
            module_add_near(&text, package);
            act_strv_pushf(out, "%s is there for %s: another Python ran, or its files are not whole", text.data,
                           environment->python ? environment->python : "the command's Python");
            return;
        }
    }
    for (size_t i = 0; i < n; i++) {
        act_buf_adds(&text, i == 0 ? "" : i + 1 < n ? ", " : " and ");
        module_add_near(&text, near[i].package);
    }
    if (n > 0)
        act_strv_pushf(out, "the environment has %s, not %s", text.data, module);
}
