/* progress.c - how far a program says that it is: the line of a progress bar, or "epoch 3/10". */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "numbers/numbers.h"

enum { PROGRESS_DIGITS = 12, PROGRESS_PIECE = 24 };

/* Returns how long "3/10" is at text, with neither number longer than it may be; 0: it is something else. */
static size_t progress_fraction(const char *text)
{
    size_t at = strspn(text, "0123456789"), of = text[at] == '/' ? strspn(text + at + 1, "0123456789") : 0;
    size_t len = at + 1 + of;

    if (at == 0 || at > PROGRESS_DIGITS || of == 0 || of > PROGRESS_DIGITS || text[len] == '/' || text[len] == '.' ||
        strtoll(text, NULL, 10) > strtoll(text + at + 1, NULL, 10))
        return 0;
    return len;
}

/* Tells whether a word that counts stands before a fraction: "Epoch [", "step=". */
static bool progress_is_counted(const char *line, const char *at)
{
    static const char *const words[] = {"epoch", "step", "iter", "iteration", "batch", "update"};

    while (at > line && strchr(" [=:(", at[-1]))
        at--;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(at - line) >= len && strncasecmp(at - len, words[i], len) == 0)
            return true;
    }
    return false;
}

/* Appends ", " and a piece of text with what stands behind it, without the blanks around it. */
static void progress_add(struct act_buf *out, const char *text, size_t len, const char *behind)
{
    while (len > 0 && *text == ' ')
        text++, len--;
    if (len > 0 && len <= PROGRESS_PIECE)
        act_buf_addf(out, ", %.*s%s", (int)len, text, behind);
}

/* Reads " [00:03<00:07, 1.00it/s, loss=2]", as tqdm, Lightning and Hugging Face write it behind the fraction. */
static bool progress_read_bar(const char *text, struct act_buf *out)
{
    const char *left = act_starts_with(text, " [") ? strchr(text, '<') : NULL;
    size_t len = left ? strcspn(left + 1, ",]") : 0;

    if (!left || strspn(text + 2, "0123456789:") != (size_t)(left - text) - 2)
        return false;
    const char *rate = left + 1 + len;
    if (*rate == ',')
        progress_add(out, rate + 1, strcspn(rate + 1, ",]"), "");
    if (left[1] != '?')
        progress_add(out, left + 1, len, " left");
    return true;
}

/* Reads " [===>...] - ETA: 12s - loss", or a bar with " 12s 20ms/step" behind it, as Keras writes it. */
static bool progress_read_keras(const char *text, struct act_buf *out)
{
    static const char cell[] = "\u2501";
    const char *eta = strstr(text, "ETA: "), *step = strstr(text, "/step");

    if (!act_starts_with(text, " [=") && !act_starts_with(text, " [>") && strncmp(text + (*text == ' '), cell, 3) != 0)
        return false;
    if (eta) {
        progress_add(out, eta + 5, strcspn(eta + 5, " "), " left");
    } else if (step) {
        const char *rate = step, *left;
        while (rate > text && rate[-1] != ' ')
            rate--;
        for (left = rate - (rate > text); left > text && left[-1] != ' ';)
            left--;
        progress_add(out, rate, (size_t)(step - rate) + strlen("/step"), "");
        progress_add(out, left, rate > left ? (size_t)(rate - left) - 1 : 0, " left");
    }
    return true;
}

char *numbers_progress(const char *line)
{
    ACT_AUTO(act_buf) found = {0};

    for (const char *at = line; *at; at++) {
        size_t len = at == line || !isalnum((unsigned char)at[-1]) ? progress_fraction(at) : 0;
        ACT_AUTO(act_buf) rest = {0};
        if (len == 0 || (!progress_read_bar(at + len, &rest) && !progress_read_keras(at + len, &rest) &&
                         !progress_is_counted(line, at)))
            continue;
        act_buf_release(&found);
        act_buf_addf(&found, "%.*s%s", (int)len, at, rest.data ? rest.data : "");
        at += len - 1;
    }
    return found.len ? act_buf_steal(&found) : NULL;
}
