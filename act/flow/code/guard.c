/* guard.c - what must not get into a package unnoticed: credentials.
 *
 * A cluster or account file or a kubeconfig with a secret stays out, whatever its name and place: every reader of such
 * a file expects one YAML (or JSON) map of at most 1 MiB, and so does this. A file that does not parse (a tab, merge
 * markers) is recognized by its name or place and searched for words, because people who may read the package may not
 * be allowed to read the file. A larger file is never loaded as configuration and is packed, but the user is told what
 * it seems to hold. The code may need other files with credentials: they are packed, and the user is told.
 */
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unistr.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/secrets.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "config/config.h"
#include "flow/code/code_internal.h"

#define RULE "holds a secret: "

_Static_assert(PACKAGE_JUDGED >= 1 << 20, "whatever loads as configuration is judged");

/* -- which text may be such a file: parsing all of them would take long -- */

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool guard_has(const struct act_buf *text, const char *what)
{
    return memmem(text->data, text->len, what, strlen(what)) != NULL;
}

static bool guard_has_word(const struct act_buf *text, const char *word)
{
    size_t n = strlen(word);
    const char *end = text->data + text->len;

    for (const char *s = text->data; (s = memmem(s, (size_t)(end - s), word, n)); s++)
        if ((s == text->data || !is_word_char(s[-1])) && !is_word_char(s[n]))
            return true;
    return false;
}

/* A letter, '_' or '@' that is written as a number ("\u0061"), as only text in quotes can have it. */
static bool has_escaped_letter(const struct act_buf *text)
{
    static const char *const begins[] = {"\\x", "\\u00", "\\U000000"};
    const char *end = text->data + text->len;

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        for (const char *s = text->data; (s = memmem(s, (size_t)(end - s), begins[i], strlen(begins[i]))); s++)
            if (s[strlen(begins[i])] >= '4' && s[strlen(begins[i])] <= '7')
                return true;
    return false;
}

static bool may_be_kubeconfig(const struct act_buf *text)
{
    static const char *const keys[] = {"token", "password", "client-key-data", "auth-provider", "exec"};
    bool may = false;

    for (size_t i = 0; !may && i < sizeof(keys) / sizeof(keys[0]); i++)
        may = guard_has(text, keys[i]);
    return may && guard_has_word(text, "users");
}

/* Nothing that secret_of_tree() finds is missing here: a key as it is, or with escapes; "\/" is JSON's. */
static bool may_be_config(const struct act_buf *text)
{
    return may_be_kubeconfig(text) || guard_has(text, "account_key") || guard_has(text, "sas_token") ||
           (guard_has(text, "docker") && guard_has(text, "password")) || guard_has_word(text, "env") ||
           (guard_has(text, "credentials") && (guard_has(text, "accountKey") || guard_has(text, "password"))) ||
           (guard_has(text, "mountCommand") && guard_has(text, "password=")) || guard_has_word(text, "secrets") ||
           has_escaped_letter(text) || act_text_is_secret(text->data) ||
           (guard_has(text, ":\\/\\/") && guard_has(text, "@"));
}

/* -- what it holds -- */

/* The credentials of a user in a kubeconfig. */
static const char *const login_keys[] = {"token", "password", "client-key-data"};

/* Tells whether a scalar, at any depth, is a URL with a password. */
static bool has_secret_url(const struct yaml *value)
{
    bool has = value->kind == YAML_SCALAR && act_text_is_secret(value->text);

    for (size_t i = 0; !has && i < value->n; i++)
        has = has_secret_url(value->items[i]);
    return has;
}

static char *url_of_tree(const struct yaml *tree)
{
    for (size_t i = 0; i < tree->n; i++)
        if (config_is_key(tree->items[i]->key) && has_secret_url(tree->items[i]))
            return act_sprintf("%s, a URL with a password", tree->items[i]->key);
    return NULL;
}

/* A variable of the run: "env.WANDB_API_KEY". */
static char *secret_of_env(const struct yaml *tree)
{
    const struct yaml *env = yaml_get(tree, "env");

    for (size_t i = 0; env && env->kind == YAML_MAP && i < env->n; i++) {
        const struct yaml *value = env->items[i];
        if (value->kind == YAML_SCALAR && *value->text && !yaml_is_null(value) &&
            act_env_gives_away(value->key, value->text))
            return act_sprintf("env.%s", value->key);
    }
    return NULL;
}

/* Published job files have "<key>" or "$KEY" there. */
static bool is_filled_in(const struct yaml *value)
{
    return value && value->kind == YAML_SCALAR && *value->text && !yaml_is_null(value) && !strchr("<$", *value->text) &&
           !act_starts_with(value->text, "{{");
}

/* A member of a list of variables, {name, value}. */
static char *secret_of_variable(const struct yaml *variable, const char *where)
{
    const struct yaml *name = variable->kind == YAML_MAP ? yaml_get(variable, "name") : NULL;
    const struct yaml *value = name && name->kind == YAML_SCALAR ? yaml_get(variable, "value") : NULL;

    return is_filled_in(value) && act_env_gives_away(name->text, value->text) ? act_sprintf("%s.%s", where, name->text)
                                                                              : NULL;
}

/* "mount -t cifs //x/y -o username=a,password=b". */
static bool has_password_option(const char *command)
{
    static const char option[] = "password=";
    const char *s = strstr(command, option);

    return s && s[strlen(option)] && !strchr("<$ ,", s[strlen(option)]);
}

static bool has_mount_password(const struct yaml *value)
{
    return act_streq(value->key, "mountCommand") && value->kind == YAML_SCALAR && has_password_option(value->text);
}

/* The credentials of a job file's volumes and registries, and its secret variables, anywhere in it. */
static char *secret_of_job(const struct yaml *tree)
{
    static const char *const keys[] = {"accountKey", "password"};
    static const char variables[] = "secrets";
    char *what = NULL;

    for (size_t i = 0; act_streq(tree->key, variables) && i < tree->n; i++)
        if (tree->items[i]->kind == YAML_MAP && is_filled_in(yaml_get(tree->items[i], "value")))
            return act_strdup(variables);
    for (size_t i = 0; act_streq(tree->key, "credentials") && i < sizeof(keys) / sizeof(keys[0]); i++)
        if (tree->kind == YAML_MAP && is_filled_in(yaml_get(tree, keys[i])))
            return act_sprintf("credentials.%s", keys[i]);
    if (has_mount_password(tree))
        return act_strdup("mountCommand, a password");
    for (size_t i = 0; !what && i < tree->n; i++)
        what = secret_of_job(tree->items[i]);
    return what;
}

/* Returns a secret among the variables of containers, [{name, value}] at "env", at or below tree, which a key of the
 * cluster file holds as a platform takes it; a new string, or NULL. */
static char *secret_of_containers(const struct yaml *tree, const char *key)
{
    ACT_AUTOFREE char *where = act_sprintf("%s, env", key);
    char *what = NULL;

    for (size_t i = 0; !what && i < tree->n; i++)
        what = secret_of_containers(tree->items[i], key);
    for (size_t i = 0; !what && act_streq(tree->key, "env") && tree->kind == YAML_LIST && i < tree->n; i++)
        what = secret_of_variable(tree->items[i], where);
    return what;
}

/* Does so for the members of the platforms' parts of a cluster file: "k8s.pod". */
static char *secret_of_section(const struct yaml *part)
{
    char *what = NULL;

    for (size_t i = 0; part->kind == YAML_MAP && !what && i < part->n; i++) {
        ACT_AUTOFREE char *key = act_sprintf("%s.%s", part->key, part->items[i]->key);
        what = secret_of_containers(part->items[i], key);
    }
    return what;
}

static char *secret_of_cluster(const struct yaml *tree)
{
    const char *key = config_find_secret(tree);
    char *what = key ? act_strdup(key) : secret_of_env(tree);

    for (size_t i = 0; tree->kind == YAML_MAP && !what && i < tree->n; i++)
        what = secret_of_section(tree->items[i]);
    return what;
}

/* ---- kubeconfigs */

/* "--client-secret" as a variable is called. New string. */
static char *variable_of_option(const char *option, size_t len)
{
    char *name = act_strndup(option + strspn(option, "-"), len - strspn(option, "-"));

    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return name;
}

/* "--token-cache" says where, not what. */
static bool is_place(const char *option, size_t len)
{
    static const char *const ends[] = {"-cache", "-dir", "-file", "-path"};
    ACT_AUTOFREE char *name = act_strndup(option, len);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (act_ends_with(name, ends[i]))
            return true;
    return false;
}

/* "--client-secret", "x" or "--client-secret=x". */
static bool is_secret_argument(const struct yaml *args, size_t i)
{
    const char *text = args->items[i]->kind == YAML_SCALAR ? args->items[i]->text : "";
    size_t n = strcspn(text, "=");
    const struct yaml *next = i + 1 < args->n ? args->items[i + 1] : NULL;
    const char *value = text[n] ? text + n + 1 : is_filled_in(next) ? next->text : "";

    if (!act_starts_with(text, "--") || is_place(text, n) || !*value || strchr("<$", *value) ||
        (!text[n] && *value == '-'))
        return false;
    ACT_AUTOFREE char *name = variable_of_option(text, n);
    return act_env_gives_away(name, value);
}

static char *secret_of_plugin(const struct yaml *exec)
{
    const struct yaml *env = yaml_get(exec, "env"), *args = yaml_get(exec, "args");
    char *what = NULL;

    for (size_t i = 0; env && env->kind == YAML_LIST && !what && i < env->n; i++)
        what = secret_of_variable(env->items[i], "users, exec.env");
    for (size_t i = 0; args && args->kind == YAML_LIST && !what && i < args->n; i++)
        if (is_secret_argument(args, i))
            what = act_strdup("users, exec.args");
    return what;
}

/* The plugins that kubectl once had keep their secrets there: access-token, refresh-token, id-token, client-secret. */
static char *secret_of_provider(const struct yaml *provider)
{
    const struct yaml *config = yaml_get(provider, "config");

    for (size_t i = 0; config && config->kind == YAML_MAP && i < config->n; i++) {
        const struct yaml *value = config->items[i];
        if ((act_ends_with(value->key, "-token") || act_ends_with(value->key, "-secret")) && is_filled_in(value))
            return act_sprintf("users, auth-provider.%s", value->key);
    }
    return NULL;
}

static char *secret_of_login(const struct yaml *user)
{
    const struct yaml *exec = yaml_get(user, "exec"), *provider = yaml_get(user, "auth-provider");
    char *what = NULL;

    for (size_t i = 0; i < sizeof(login_keys) / sizeof(login_keys[0]); i++)
        if (is_filled_in(yaml_get(user, login_keys[i])))
            return act_sprintf("users, %s", login_keys[i]);
    if (exec && exec->kind == YAML_MAP)
        what = secret_of_plugin(exec);
    return what || !provider || provider->kind != YAML_MAP ? what : secret_of_provider(provider);
}

static char *secret_of_kubeconfig(const struct yaml *tree)
{
    const struct yaml *users = yaml_get(tree, "users"), *clusters = yaml_get(tree, "clusters");
    char *what = NULL;

    for (size_t i = 0; users && users->kind == YAML_LIST && !what && i < users->n; i++) {
        const struct yaml *user = users->items[i]->kind == YAML_MAP ? yaml_get(users->items[i], "user") : NULL;
        what = user && user->kind == YAML_MAP ? secret_of_login(user) : NULL;
    }
    if (!what && users && clusters && has_secret_url(clusters))
        what = act_strdup("clusters, a URL with a password");
    return what;
}

static char *secret_of_tree(const struct yaml *tree)
{
    char *what = secret_of_cluster(tree);

    what = what ? what : secret_of_kubeconfig(tree);
    what = what ? what : secret_of_job(tree);
    return what ? what : url_of_tree(tree);
}

/* -- what it seems to hold, where it does not parse -- */

/* Returns the key in front of a colon, as a new string. */
static char *word_before(const char *start, const char *colon)
{
    const char *end = colon;

    while (end > start && strchr(" \t\"'", end[-1]))
        end--;
    const char *word = end;
    while (word > start && is_word_char(word[-1]))
        word--;
    return act_strndup(word, (size_t)(end - word));
}

/* Returns the value after the colon or on the indented lines that follow, of a long one the beginning; a new string. */
static char *value_behind(const char *s)
{
    enum { VALUE_MAX = 512 };
    size_t n = 0;

    s += strspn(s, " \t\r");
    while (*s == '\n' && (s[1] == ' ' || s[1] == '\t'))
        s += 1 + strspn(s + 1, " \t\r");
    s += strspn(s, "\"'");
    while (n < VALUE_MAX && !strchr("\r\n,}]#\"'", s[n])) /* the NUL at the end, too */
        n++;
    return act_strndup(s, n);
}

/* Templates do not parse either: what they put in is elsewhere. */
static bool is_value(const char *text)
{
    return *text && strcmp(text, "null") != 0 && strcmp(text, "~") != 0 && !act_starts_with(text, "{{") &&
           !act_starts_with(text, "${");
}

/* Variables are in capitals; "key: x" is about anything. */
static bool is_variable(const char *word)
{
    return *word && word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

static bool guard_is_secret(const char *word, const char *value)
{
    return is_value(value) && (config_is_secret(word) || (is_variable(word) && act_env_gives_away(word, value)));
}

/* Does for text what is_filled_in() does for a value that was parsed. */
static bool is_filled_in_text(const char *value)
{
    return is_value(value) && !strchr("<$", *value);
}

/* Does what secret_of_job() does for a member "word: value" somewhere in a job file. */
static bool is_job_secret(const struct act_buf *text, const char *word, const char *value)
{
    if (!is_filled_in_text(value))
        return false;
    if (act_streq(word, "accountKey") || act_streq(word, "password"))
        return guard_has_word(text, "credentials");
    return act_streq(word, "value") && guard_has_word(text, "secrets");
}

typedef bool member_fn(const struct act_buf *text, const char *word, const char *value);

/* Returns the first word of a member that is a secret, as a new string, or NULL. */
static char *guard_find_member(const struct act_buf *text, member_fn *is_one)
{
    const char *end = text->data + text->len;

    for (const char *colon = text->data; (colon = memchr(colon, ':', (size_t)(end - colon))); colon++) {
        char *word = word_before(text->data, colon);
        ACT_AUTOFREE char *value = value_behind(colon + 1);
        if (is_one(text, word, value))
            return word;
        free(word);
    }
    return NULL;
}

static bool is_member_secret(const struct act_buf *text, const char *word, const char *value)
{
    (void)text;
    return guard_is_secret(word, value);
}

static char *secret_of_text(const struct act_buf *text)
{
    char *word = guard_find_member(text, is_member_secret);

    if (word)
        return word;
    return act_text_is_secret(text->data) ? act_strdup("a URL with a password") : NULL;
}

static bool is_like_kubeconfig(const struct act_buf *text)
{
    static const char *const words[] = {"clusters", "contexts", "context", "client-certificate-data"};
    bool is = false;

    for (size_t i = 0; !is && i < sizeof(words) / sizeof(words[0]); i++)
        is = guard_has_word(text, words[i]);
    return is && guard_has_word(text, "users");
}

/* Does for text what secret_of_kubeconfig() does for a tree. */
static char *secret_of_kubeconfig_text(const struct act_buf *text)
{
    const char *end = text->data + text->len;

    for (size_t i = 0; is_like_kubeconfig(text) && i < sizeof(login_keys) / sizeof(login_keys[0]); i++) {
        size_t n = strlen(login_keys[i]);
        for (const char *s = text->data; (s = memmem(s, (size_t)(end - s), login_keys[i], n)); s++) {
            const char *colon = s + n + strspn(s + n, "\"' \t");
            bool is_key = *colon == ':' && (s == text->data || (!is_word_char(s[-1]) && s[-1] != '-'));
            ACT_AUTOFREE char *value = is_key ? value_behind(colon + 1) : NULL;
            if (value && is_filled_in_text(value))
                return act_sprintf("users, %s", login_keys[i]);
        }
    }
    return NULL;
}

/* "kubeconfig", "my.kubeconfig.old", "config", "admin.conf": what people and tools call them. */
static bool is_kubeconfig_name(const char *path)
{
    const char *name = act_path_basename(path);

    return strstr(name, "kubeconfig") || strcmp(name, "config") == 0 || act_ends_with(name, ".conf") ||
           act_ends_with(name, ".json") || package_is_config(path);
}

static char *secret_of_job_text(const struct act_buf *text)
{
    static const char mount[] = "mountCommand";
    const char *command = memmem(text->data, text->len, mount, strlen(mount));

    if (command && has_password_option(command))
        return act_sprintf("%s, a password", mount);
    return guard_find_member(text, is_job_secret);
}

static bool is_job_file_name(const char *path)
{
    return act_ends_with(path, ".json") || act_ends_with(path, ".jsonc") || package_is_config(path);
}

/* -- the judgement -- */

enum order { ORDER_NONE, ORDER_LITTLE, ORDER_BIG };

/* Finds the byte order of text in UTF-16, by its mark or by its first character. */
static enum order utf16_order(const struct act_buf *text)
{
    const char *s = text->data;

    if (text->len < 2)
        return ORDER_NONE;
    if (memcmp(s, "\xff\xfe", 2) == 0 || (s[0] && !s[1]))
        return ORDER_LITTLE;
    return memcmp(s, "\xfe\xff", 2) == 0 || (!s[0] && s[1]) ? ORDER_BIG : ORDER_NONE;
}

/* Other tools write UTF-16, and PyYAML reads it. What is no character becomes U+FFFD. */
static void make_utf8(struct act_buf *text)
{
    enum order order = utf16_order(text);
    size_t n = order == ORDER_NONE ? 0 : text->len / 2;
    ACT_AUTOFREE uint16_t *units = act_alloc((n + 1) * sizeof(*units));
    struct act_buf out = {0};

    if (n == 0)
        return;
    memcpy(units, text->data, n * sizeof(*units));
    for (size_t i = 0; i < n; i++)
        units[i] = order == ORDER_BIG ? be16toh(units[i]) : le16toh(units[i]);
    for (size_t i = 0; i < n;) {
        uint8_t utf8[4];
        ucs4_t character;
        i += (size_t)u16_mbtouc(&character, units + i, n - i);
        act_buf_add(&out, (const char *)utf8, (size_t)u8_uctomb(utf8, character, sizeof(utf8)));
    }
    explicit_bzero(units, n * sizeof(*units));
    act_buf_wipe(text);
    *text = out;
}

/* NULL too where it cannot be such a file. */
static char *judge_text(const char *path, const struct act_buf *text)
{
    struct act_error ignored;
    struct yaml *tree = NULL;
    char *seems = package_is_config(path) ? secret_of_text(text) : NULL;

    if (!seems && is_kubeconfig_name(path))
        seems = secret_of_kubeconfig_text(text);
    bool folds =
        package_is_config(path) && (guard_has(text, "\\\n") || guard_has(text, "\\\r")); /* in the midst of a word */

    if (!seems && !folds && !may_be_config(text))
        return NULL;
    if (yaml_parse(text->data, text->len, "package", &tree, &ignored) < 0)
        return seems || !is_job_file_name(path) ? seems : secret_of_job_text(text);
    free(seems);
    char *what = tree->kind == YAML_MAP ? secret_of_tree(tree) : secret_of_job(tree);
    yaml_tree_free(tree);
    return what;
}

char *flow_guard_judge(const char *path, const void *data, size_t len)
{
    struct act_buf text = {0};

    act_buf_add(&text, data, len);
    make_utf8(&text);
    ACT_AUTOFREE char *what = text.len > 0 ? judge_text(path, &text) : NULL;
    act_buf_wipe(&text);
    return what ? act_sprintf(RULE "%s", what) : NULL;
}

/* -- other credentials -- */

static bool is_private_key(const char *data, size_t len)
{
    return memmem(data, len, "PRIVATE KEY-----", strlen("PRIVATE KEY-----")) != NULL;
}

static bool is_service_account(const char *data, size_t len)
{
    CODEC_AUTOJSON json_t *json = NULL;
    struct act_error ignored;

    return codec_json_parse(data, len, "package", &json, &ignored) == 0 && json_is_object(json) &&
           json_object_get(json, "private_key") != NULL;
}

/* Files recognized by name alone have no look(); those that have one are at most 16 KiB. */
static const struct credential {
    const char *name; /* "*.pem": how it ends, else all of it */
    bool (*look)(const char *data, size_t len);
} credentials[] = {
    {".env", NULL},
    {"credentials.json", NULL},
    {".netrc", NULL},
    {"_netrc", NULL},
    {"kaggle.json", NULL},
    {"id_rsa", NULL},
    {"id_dsa", NULL},
    {"id_ecdsa", NULL},
    {"id_ed25519", NULL},
    {"id_ecdsa_sk", NULL},
    {"id_ed25519_sk", NULL},
    {"*.pem", is_private_key},
    {"*.key", is_private_key},
    {"*.json", is_service_account},
};

/* A limit on the files that are opened: this only warns, so it must not take long. */
enum { LOOK_BYTES = 16 << 10, MAX_LOOKS = 64 };

static const struct credential *find_credential(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof(credentials) / sizeof(credentials[0]); i++) {
        const char *wanted = credentials[i].name;
        size_t tail = strlen(wanted) - 1;
        if (*wanted == '*' ? n >= tail && memcmp(name + n - tail, wanted + 1, tail) == 0 : strcmp(name, wanted) == 0)
            return &credentials[i];
    }
    return NULL;
}

static bool looks_so(const char *root, const char *path, bool (*look)(const char *, size_t), int *looks_left)
{
    ACT_AUTOFREE char *file = act_path_join(root, path);
    ACT_AUTOFREE char *data = NULL;
    size_t len = 0;

    if ((*looks_left)-- <= 0 || act_file_read(file, LOOK_BYTES, &data, &len, NULL) < 0)
        return false;
    bool is = look(data, len);
    explicit_bzero(data, len);
    return is;
}

static bool is_credential(const char *root, const struct package_entry *e, int *looks_left)
{
    const struct credential *c = S_ISREG(e->mode) ? find_credential(act_path_basename(e->path)) : NULL;

    return c && (!c->look || (e->size <= LOOK_BYTES && looks_so(root, e->path, c->look, looks_left)));
}

static void guard_note_left_out(const struct package_list *list)
{
    for (size_t i = 0; i < list->n_left_out; i++)
        if (act_starts_with(list->left_out[i].rule, RULE))
            act_note("left out: '%s' %s", list->left_out[i].path, list->left_out[i].rule);
}

static void warn_of_credentials(const char *root, const struct package_list *list)
{
    enum { NAMED = 5 };
    ACT_AUTO(act_buf) names = {0};
    int looks_left = MAX_LOOKS;
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (is_credential(root, &list->v[i], &looks_left) && n++ < NAMED)
            act_buf_addf(&names, "%s'%s'", names.len ? ", " : "", list->v[i].path);
    if (n > NAMED)
        act_buf_addf(&names, " and %zu more", n - NAMED);
    if (n > 0)
        act_warn("credentials go into the package: %s; '.actignore' leaves out what the code does not need",
                 names.data);
}

/* Reads a part of a file, which may be missing. Tells whether there is something to look at. */
static bool guard_read_part(int fd, off_t at, size_t max, struct act_buf *out)
{
    ACT_AUTOFREE char *data = act_alloc(max);
    ssize_t n = act_pread_all(fd, data, max, at);

    act_buf_add(out, data, n > 0 ? (size_t)n : 0);
    explicit_bzero(data, max);
    make_utf8(out);
    return out->len > 0;
}

static char *secret_of_part(const char *path, const struct act_buf *text)
{
    char *what = package_is_config(path) ? secret_of_text(text) : NULL;

    what = what ? what : secret_of_job_text(text);
    return what ? what : secret_of_kubeconfig_text(text);
}

/* Tells what a file seems to hold that is too large to be judged: at its beginning, or at its end, where the users of a
 * kubeconfig are. New string, or NULL. */
static char *secret_of_large(const char *root, const struct package_entry *e)
{
    enum { PART = 256 << 10 };
    ACT_AUTOFREE char *file = act_path_join(root, e->path);
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const off_t parts[] = {0, (off_t)(e->size - PART)};
    char *what = NULL;

    for (size_t i = 0; fd >= 0 && !what && i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct act_buf text = {0};
        what = guard_read_part(fd, parts[i], PART, &text) ? secret_of_part(e->path, &text) : NULL;
        act_buf_wipe(&text);
    }
    if (fd >= 0)
        close(fd);
    return what;
}

static void warn_of_large(const char *root, const struct package_list *list)
{
    int looks_left = MAX_LOOKS;

    for (size_t i = 0; i < list->n && looks_left > 0; i++) {
        const struct package_entry *e = &list->v[i];
        if (!S_ISREG(e->mode) || e->size <= PACKAGE_JUDGED ||
            (!is_job_file_name(e->path) && !is_kubeconfig_name(e->path)))
            continue;
        ACT_AUTOFREE char *what = secret_of_large(root, e);
        looks_left--;
        if (what)
            act_warn("'%s' goes into the package and seems to hold a secret: %s; it is too large to be left out for "
                     "that, but a line in '.actignore' leaves it out",
                     e->path, what);
    }
}

void flow_guard_tell(const char *root, const struct package_list *list)
{
    guard_note_left_out(list);
    warn_of_credentials(root, list);
    warn_of_large(root, list);
}
