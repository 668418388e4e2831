/* Plays the driver's library for card.py: two cards of 81559 MiB. Who holds memory is in the file $PLAYED_HOLDER. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CARDS = 2 };
static int seen[CARDS], n_seen;

/* The digits of the UUID of a card are its number, in the groups that differ (tests/e2e/gpu_machine.py). */
static void uuid_of(int card, uint8_t out[16])
{
    static const uint8_t rest[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78};

    memset(out, card * 0x11, 4);
    memcpy(out + 4, rest, sizeof(rest));
}

int cuInit(unsigned flags)
{
    const char *given = getenv("CUDA_VISIBLE_DEVICES");

    (void)flags;
    for (int card = 0; card < CARDS; card++) {
        char uuid[16], index[16];
        snprintf(uuid, sizeof(uuid), "GPU-%d%d", card, card);
        snprintf(index, sizeof(index), "%d", card);
        if (!given || strstr(given, uuid) || (!strchr(given, '-') && strstr(given, index)))
            seen[n_seen++] = card;
    }
    return 0;
}

int cuDeviceGetCount(int *out)
{
    *out = n_seen;
    return 0;
}

int cuDeviceGet(int *out, int i)
{
    *out = seen[i];
    return 0;
}

int cuDeviceGetUuid(uint8_t *out, int card)
{
    uuid_of(card, out);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *out, int card)
{
    (void)card;
    *out = (size_t)81559 << 20;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **out, int card)
{
    (void)card;
    *out = NULL;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    (void)context;
    return 0;
}

int cuMemAlloc_v2(uint64_t *out, size_t size)
{
    FILE *f = fopen(getenv("PLAYED_HOLDER"), "w");

    (void)size;
    *out = 1;
    return f && fprintf(f, "%d\n", (int)getpid()) > 0 && fclose(f) == 0 ? 0 : 1;
}
