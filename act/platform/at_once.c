/* at_once.c - questions to several machines at the same time. */
#include <pthread.h>

#include "base/text.h"
#include "platform/platform_internal.h"

struct at_once {
    void (*ask)(void *arg, size_t i);
    void *arg;
    size_t i;
    pthread_t thread;
    bool is_apart;
};

static void *ask_apart(void *arg)
{
    struct at_once *a = arg;

    a->ask(a->arg, a->i);
    return NULL;
}

/* This thread asks the last one, and those for which there is no other thread. */
void platform_at_once(size_t n, void (*ask)(void *arg, size_t i), void *arg)
{
    ACT_AUTOFREE struct at_once *all = act_calloc(n + 1, sizeof(*all));

    for (size_t i = 0; i < n; i++) {
        all[i] = (struct at_once){.ask = ask, .arg = arg, .i = i};
        all[i].is_apart = i + 1 < n && pthread_create(&all[i].thread, NULL, ask_apart, &all[i]) == 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!all[i].is_apart)
            ask(arg, i);
    for (size_t i = 0; i < n; i++)
        if (all[i].is_apart)
            pthread_join(all[i].thread, NULL);
}
