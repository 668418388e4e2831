/* secrets.c - the table of words that give a secret away, and those that only end like one. */
#include "base/secrets.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

/* Words that give away the name of a secret. '_', digits and the like separate words. */
static const struct secret_word {
    const char *text;
    enum {
        ANYWHERE, /* CLIENTSECRETS */
        AT_END,   /* of a word: WANDB_KEY and APIKEY, but not KEYBOARD */
        WHOLE,    /* a word of its own: GH_PAT, but neither PATH nor COMPAT */
    } where;
    bool sounds; /* also in the names of counters and switches */
} words[] = {
    {"SECRET", ANYWHERE, false},
    {"PASSWORD", ANYWHERE, false},
    {"PASSWD", ANYWHERE, false},
    {"PASSPHRASE", ANYWHERE, false},
    {"PASSCODE", ANYWHERE, false},
    {"CREDENTIAL", ANYWHERE, true},
    {"CONNECTION_STRING", ANYWHERE, false},
    {"CONNECTIONSTRING", ANYWHERE, false},
    {"CONN_STR", ANYWHERE, false},
    {"WEBHOOK", ANYWHERE, true},
    {"KEY", AT_END, true},
    {"KEYS", AT_END, true},
    {"TOKEN", AT_END, true},
    {"TOKENS", AT_END, true},
    {"PASS", AT_END, false},
    {"PWD", AT_END, false},
    {"CREDS", AT_END, true},
    {"CRED", WHOLE, true},
    {"PW", WHOLE, false},
    {"PAT", WHOLE, false},
    {"SAS", WHOLE, true},
    {"JWT", WHOLE, true},
    {"DSN", WHOLE, true},
    {"AUTH", WHOLE, true},
    {"AUTHORIZATION", WHOLE, true},
    {"BEARER", WHOLE, true},
    {"COOKIE", WHOLE, true},
};

/* English words that end like the name of a secret. PWD and OLDPWD are set by every shell. */
static const char *const harmless[] = {
    "BYPASS", "COMPASS", "ENCOMPASS", "OVERPASS", "SURPASS", "TRESPASS", "UNDERPASS", "DONKEY", "HOCKEY",
    "HOTKEY", "HOTKEYS", "JOCKEY",    "MONKEY",   "TURKEY",  "TURNKEY",  "WHISKEY",   "OLDPWD", "ASKPASS",
};

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Tells whether the word of name that ends at end is such an English word. */
static bool secrets_is_harmless(const char *name, const char *end)
{
    const char *start = end;

    while (start > name && is_letter(start[-1]))
        start--;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        if (strlen(harmless[i]) == (size_t)(end - start) && strncasecmp(start, harmless[i], (size_t)(end - start)) == 0)
            return true;
    return false;
}

static bool secrets_has_word(const char *name, const struct secret_word *word)
{
    for (const char *s = name; (s = strcasestr(s, word->text)); s++) {
        const char *end = s + strlen(word->text);
        if (word->where != ANYWHERE && is_letter(*end))
            continue;
        if (word->where == WHOLE && s > name && is_letter(s[-1]))
            continue;
        if (!secrets_is_harmless(name, end))
            return true;
    }
    return false;
}

static const struct secret_word *secrets_word_of(const char *name)
{
    for (size_t i = 0; strcmp(name, "PWD") != 0 && i < sizeof(words) / sizeof(words[0]); i++)
        if (secrets_has_word(name, &words[i]))
            return &words[i];
    return NULL;
}

static bool has_password_in_url(const char *text)
{
    for (const char *s = text; (s = strstr(s, "://"));) {
        s += strlen("://");
        size_t n = strcspn(s, "/?# \t\r\n\"'");
        const char *at = memrchr(s, '@', n), *colon = memchr(s, ':', n);
        if (at && colon && colon + 1 < at)
            return true;
    }
    return false;
}

bool act_text_is_secret(const char *text)
{
    static const char *const parts[] = {
        "?sig=", "&sig=", ";AccountKey=", ";SharedAccessKey=", "SharedAccessSignature="};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text, parts[i]))
            return true;
    return has_password_in_url(text);
}

/* Tells whether the value is a number of at most nine digits, or a yes or no. */
static bool is_switch(const char *value)
{
    static const char *const switches[] = {"true", "false", "yes", "no", "on", "off"};
    size_t n = strlen(value);

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        if (strcasecmp(value, switches[i]) == 0)
            return true;
    return n <= 9 && strspn(value, "0123456789") == n;
}

const char *act_env_shown(const char *name, const char *value)
{
    return secrets_word_of(name) || act_text_is_secret(value) ? "***" : value;
}

bool act_env_gives_away(const char *name, const char *value)
{
    const struct secret_word *word = secrets_word_of(name);

    return act_text_is_secret(value) || (word && !(word->sounds && is_switch(value)));
}
