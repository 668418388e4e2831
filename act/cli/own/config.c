#include <stdint.h>
#include <string.h>

#include "base/dirs.h"
#include "base/log.h"
#include "base/path.h"
#include "base/terminal.h"
#include "cli/own/own.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/cluster/doctor.h"
#include "flow/cluster/own.h"
#include "flow/flow.h"

#define ORIGIN_DEFAULT "default"

/* Adds "~/.config/act/config.yaml:2", which fits beside a key and its value on 80 columns. On a terminal a
 * default has no origin, so that other values stand out. */
static void push_origin(struct act_strv *cells, const char *origin)
{
    if (cli_width() > 0 && act_streq(origin, ORIGIN_DEFAULT)) {
        act_strv_push(cells, "");
        return;
    }
    ACT_AUTOFREE char *home = act_home_dir();
    bool below = strcmp(home, "/") != 0 && act_path_is_within(origin, home);

    act_strv_pushf(cells, "# %s%s", below ? "~" : "", below ? origin + strlen(home) : origin);
}

static void push_value(struct act_strv *cells, const char *key, const json_t *row)
{
    const json_t *value = json_object_get(row, "value");

    act_strv_push(cells, key);
    if (json_is_string(value))
        act_strv_push(cells, json_string_value(value));
    else
        act_strv_take(cells, codec_json_line(value));
    push_origin(cells, codec_json_str(row, "origin", "?"));
}

/* Prints where it all comes from, in lines of their own where one would be too wide. */
static void print_origin(const struct config *c)
{
    ACT_AUTOFREE char *line = act_sprintf("# cluster %s, from %s, project %s", c->cluster,
                                          c->file ? c->file : "the built-in configuration", c->project_root);
    int width = cli_width();

    if (width == 0 || act_columns(line) <= width)
        printf("%s\n", line);
    else
        printf("# cluster %s\n# from %s\n# project %s\n", c->cluster, c->file ? c->file : "the built-in configuration",
               c->project_root);
}

/* A key that is cut cannot be typed: on a terminal keys are whole where there is room. Those of folders are long, and
 * come last, in a table of their own. */
enum { NARROW_KEY = 22, FOR_WHOLE_KEYS = 72 };

static void print_rows(const struct act_strv *cells, int narrow_key)
{
    const struct cli_column columns[] = {{NULL, 'l', .min = narrow_key, .pad = 44},
                                         {NULL, 'l', .rank = 1, .min = 16, .pad = 32},
                                         {NULL, 'l', .rank = 2, .below = true}};

    if (cells->n)
        cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), cells);
}

static bool cmd_config_is_empty(const json_t *value)
{
    return json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* Tells whether a row is more than a default that says nothing, or that this platform does not read. */
static bool cmd_config_matters(const struct config *c, const char *key, const json_t *row)
{
    bool is_default = act_streq(codec_json_str(row, "origin", NULL), ORIGIN_DEFAULT);
    const json_t *value = json_object_get(row, "value");

    if (json_object_get(row, "error"))
        return true;
    return is_default ? !cmd_config_is_empty(value) && !config_is_for_others(c, key) : !json_is_null(value);
}

/* Says what the rows do not. */
static void cmd_config_print_rest(size_t left_out)
{
    const char *defaults = cli_width() > 0 ? "values without '#' are defaults" : "";
    ACT_AUTO(act_buf) line = {0};

    if (left_out)
        act_buf_addf(&line, "%zu keys have no value, or are of other platforms; --all shows them", left_out);
    act_buf_addf(&line, "%s%s", line.len && *defaults ? "; " : "", defaults);
    if (line.len == 0)
        return;
    fputs("# ", stdout);
    cli_put_prose(line.data, 2, 2);
}

static int cmd_config_show(struct cli *cli, char *const *words, struct act_error *err)
{
    ACT_AUTO(act_strv) cells = {0}, of_folders = {0};
    const char *key;
    json_t *row;
    size_t left_out = 0;
    int rc = cli_open(cli, err);

    (void)words;
    if (rc < 0)
        return rc;
    const struct config *c = cli->flow.config;
    json_t *values = config_show(c);
    if (cli->options.json)
        return cli_print_pack(err, "{s:s,s:s?,s:s,s:o}", "cluster", c->cluster, "file", c->file, "project_root",
                              c->project_root, "values", values);
    print_origin(c);
    json_object_foreach(values, key, row)
    {
        bool shown = cli->options.all || cmd_config_matters(c, key, row);
        left_out += !shown;
        if (shown)
            push_value(cli_width() > 0 && act_starts_with(key, "config_param.") ? &of_folders : &cells, key, row);
    }
    json_decref(values);
    int narrow_key = cli_width() >= FOR_WHOLE_KEYS ? 0 : NARROW_KEY;
    print_rows(&cells, narrow_key);
    print_rows(&of_folders, narrow_key);
    cmd_config_print_rest(left_out);
    return 0;
}

static int cmd_config_print_report(const struct config_report *report, struct act_error *err)
{
    return cli_print_pack(err, "{s:s?,s:s?,s:b,s:o}", "cluster", report->cluster, "file", report->file, "ok",
                          report->problems.n == 0, "problems", codec_json_strv_new(&report->problems));
}

static int cmd_config_check(struct cli *cli, char *const *words, struct act_error *err)
{
    ACT_AUTO(config_report) report = {0};
    const struct act_strv *problems = &report.problems;
    struct cli_request request;

    (void)words;
    cli_request(cli, &request);
    int rc = flow_check_config(&request.config, &report, err);
    if (rc == 0 && cli->options.json)
        rc = cmd_config_print_report(&report, err);
    for (size_t i = 0; i < problems->n && !cli->options.json; i++)
        cli_put_prose(problems->v[i], 0, 2);
    if (rc == 0 && problems->n > 0)
        rc = act_error_set(err, ACT_CONFIG, "%zu problem%s in the configuration%s%s%s", problems->n,
                           cli_plural(problems->n), report.cluster ? " of cluster '" : "",
                           report.cluster ? report.cluster : "", report.cluster ? "'" : "");
    else if (rc == 0)
        act_note("the configuration of cluster '%s' is valid: %s", report.cluster,
                 report.file ? report.file : "built-in");
    return rc;
}

/* Returns the members of the rows below "docker." as one object; NULL: there are none. */
static json_t *members_of(json_t *values, const char *key)
{
    ACT_AUTOFREE char *above = act_sprintf("%s.", key);
    json_t *object = json_object(), *row;
    const char *name;

    json_object_foreach(values, name, row)
    {
        json_t *value = json_object_get(row, "value");
        if (act_starts_with(name, above) && !json_is_null(value))
            json_object_set(object, name + strlen(above), value);
    }
    if (json_object_size(object))
        return object;
    json_decref(object);
    return NULL;
}

static int print_value(struct cli *cli, const char *key, json_t *value, const char *origin, struct act_error *err)
{
    if (cli->options.json)
        return cli_print_pack(err, "{s:s,s:O,s:s?}", "key", key, "value", value, "origin", origin);
    if (json_is_string(value)) {
        cli_put_path(json_string_value(value));
    } else {
        ACT_AUTOFREE char *line = codec_json_line(value);
        cli_put_path(line);
    }
    putchar('\n');
    return 0;
}

static int no_value(const struct config *c, const char *key, struct act_error *err)
{
    ACT_AUTOFREE char *near = NULL;

    if (config_home_of(key, &near) != CONFIG_NO_KEY)
        return act_error_set(err, ACT_NOT_FOUND, "'%s' has no value in cluster '%s'", key, c->cluster);
    act_error_set(err, ACT_USAGE, "there is no key '%s'", key);
    return near ? act_error_hint(err, "did you mean '%s'?", near)
                : act_error_hint(err, "'a config show --all' lists them");
}

static int get_setting(struct cli *cli, const char *key, struct act_error *err)
{
    ACT_AUTO(config_user) user = {0};
    ACT_AUTOFREE char *file = config_user_file();
    int rc = config_user_read(&user, err);
    bool is_name = strcmp(key, "default_cluster") == 0;

    if (rc < 0)
        return rc;
    if (is_name ? !user.default_cluster : user.trusted_hosts.n == 0)
        return act_error_set(err, ACT_NOT_FOUND, "'%s' has no value in '%s'", key, file);
    CODEC_AUTOJSON json_t *value =
        is_name ? codec_json_bytes_new(user.default_cluster) : codec_json_strv_new(&user.trusted_hosts);
    return print_value(cli, key, value, file, err);
}

static void push_key(void *arg, const struct config_key_text *key)
{
    act_strv_push(arg, key->path);
}

/* Lists all that 'a config get' takes. */
static int cmd_config_list_keys(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(act_strv) keys = {0};

    config_each_key(CONFIG_CLUSTER_FILE, push_key, &keys);
    config_each_key(CONFIG_USER_FILE, push_key, &keys);
    if (cli->options.json)
        return cli_print_pack(err, "{s:o}", "keys", codec_json_strv_new(&keys));
    for (size_t i = 0; i < keys.n; i++)
        puts(keys.v[i]);
    act_note("'a config get KEY' prints the value of one, 'a config show' all values; 'man act.yaml' explains them");
    return 0;
}

static int cmd_config_get(struct cli *cli, char *const *words, struct act_error *err)
{
    const char *key = words[0];

    if (!key)
        return cmd_config_list_keys(cli, err);
    if (config_home_of(key, NULL) == CONFIG_IN_SETTINGS)
        return get_setting(cli, key, err);
    int rc = cli_open(cli, err);
    if (rc < 0)
        return rc;
    CODEC_AUTOJSON json_t *values = config_show(cli->flow.config);
    const json_t *row = json_object_get(values, key);
    json_t *value = json_object_get(row, "value");
    CODEC_AUTOJSON json_t *members = row ? NULL : members_of(values, key);
    if (members)
        return print_value(cli, key, members, NULL, err);
    if (!value || json_is_null(value))
        return no_value(cli->flow.config, key, err);
    return print_value(cli, key, value, codec_json_str(row, "origin", NULL), err);
}

/* Tells whether one key is the other one, or in it. */
static bool cmd_config_keys_overlap(const char *a, const char *b)
{
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    const char *longer = strlen(a) > n ? a : b;

    return strncmp(a, b, n) == 0 && (longer[n] == '\0' || longer[n] == '.');
}

/* Refuses a key after one that it would change. */
static int cmd_config_check_overlap(const struct flow_key *keys, size_t i, struct act_error *err)
{
    for (size_t k = 0; k < i; k++)
        if (cmd_config_keys_overlap(keys[k].key, keys[i].key))
            return act_error_set(err, ACT_USAGE, "'%s' and '%s' set the same value: name it once", keys[k].key,
                                 keys[i].key);
    return 0;
}

/* Reads "KEY=VALUE...". Keys are cut off in texts, which the caller releases like *out. */
static int cmd_config_read_pairs(const struct cli *cli, char *const *words, size_t n, struct act_strv *texts,
                                 struct flow_key **out, struct act_error *err)
{
    struct flow_key *keys = act_calloc(n, sizeof(*keys));

    *out = keys;
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(words[i], '=');
        if (!equals || equals == words[i]) {
            act_error_set(err, ACT_USAGE, "'%s' has no value: a config set KEY VALUE | KEY=VALUE...", words[i]);
            return cli_hint_help(cli, err);
        }
        act_strv_take(texts, act_strndup(words[i], (size_t)(equals - words[i])));
        keys[i] = (struct flow_key){texts->v[i], equals + 1};
        int rc = cmd_config_check_overlap(keys, i, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Refuses -c and -p for the user's own settings, which are for all clusters. */
static int cmd_config_check_key(const struct cli *cli, const char *key, struct act_error *err)
{
    if (config_home_of(key, NULL) != CONFIG_IN_SETTINGS || (!cli->options.cluster && !cli->options.params.n))
        return 0;
    return act_error_set(err, ACT_USAGE, "'%s' is a key of your own settings, and goes with no -c and no -p", key);
}

static int cmd_config_print_change(const struct cli *cli, const struct act_strv *names, const char *file, bool changed,
                                   struct act_error *err)
{
    CODEC_AUTOJSON json_t *keys = codec_json_strv_new(names);

    return cli_print_pack(err, "{s:O?,s:O?,s:s,s:b,s:b}", "key", names->n == 1 ? json_array_get(keys, 0) : NULL, "keys",
                          keys, "file", file, "changed", changed, "dry_run", cli->options.dry_run);
}

/* Sets or removes the keys, which is said in one line. */
static int cmd_config_change(struct cli *cli, const struct flow_key *keys, size_t n, struct act_error *err)
{
    static const char *const done[2][2] = {{"set", "removed"}, {"would set", "would remove"}};
    const struct flow_keys wanted = {keys, n, cli->options.dry_run};
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_buf) listed = {0};
    ACT_AUTOFREE char *file = NULL;
    struct cli_request request;
    bool changed = false;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        act_strv_push(&names, keys[i].key);
        rc = cmd_config_check_key(cli, keys[i].key, err);
    }
    cli_request(cli, &request);
    if (rc == 0)
        rc = flow_set_keys(&request.config, &wanted, &file, &changed, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        act_buf_addf(&listed, "%s'%s'", i ? ", " : "", keys[i].key);
    if (changed)
        act_note("%s %s %s '%s'", done[cli->options.dry_run][!keys->value], listed.data, keys->value ? "in" : "from",
                 file);
    else if (keys->value)
        act_note("%s %s that already in '%s'", listed.data, n == 1 ? "is" : "are", file);
    else
        act_note("%s is not set in '%s': there is nothing to remove", listed.data, file);
    return cli->options.json ? cmd_config_print_change(cli, &names, file, changed, err) : 0;
}

static int cmd_config_set(struct cli *cli, char *const *words, struct act_error *err)
{
    size_t n = cli->words.n - 1;
    ACT_AUTO(act_strv) texts = {0};
    ACT_AUTOFREE struct flow_key *pairs = NULL;

    if (n == 2 && !strchr(words[0], '='))
        return cmd_config_change(cli, &(struct flow_key){words[0], words[1]}, 1, err);
    int rc = cmd_config_read_pairs(cli, words, n, &texts, &pairs, err);
    return rc < 0 ? rc : cmd_config_change(cli, pairs, n, err);
}

static int cmd_config_unset(struct cli *cli, char *const *words, struct act_error *err)
{
    return cmd_config_change(cli, &(struct flow_key){words[0], NULL}, 1, err);
}

struct verb {
    const char *name;
    size_t least, most; /* words after it */
    const char *usage, *options;
    int (*run)(struct cli *cli, char *const *words, struct act_error *err);
};

static int check_usage(const struct cli *cli, const struct verb *verb, struct act_error *err)
{
    const struct cli_option *o = cli_given_beyond(cli, verb->options);
    size_t n = cli->words.n - 1;

    if (o)
        return act_error_set(err, ACT_USAGE, "'a config %s' takes no --%s%s", verb->name, o->long_name,
                             strcmp(o->long_name, "all") == 0 ? ": it is about 'a config show'" : "");
    if (n >= verb->least && n <= verb->most)
        return 0;
    act_error_set(err, ACT_USAGE, "'a config %s' %s: a config %s", verb->name,
                  n < verb->least ? "needs more" : "takes fewer words", verb->usage);
    return cli_hint_help(cli, err);
}

int cmd_config(struct cli *cli, struct act_error *err)
{
    static const struct verb verbs[] = {
        {"show", 0, 0, "show", "cluster num-gpu param single compile-args all json", cmd_config_show},
        {"check", 0, 0, "check", "cluster num-gpu param single compile-args json", cmd_config_check},
        {"get", 0, 1, "get [KEY]", "cluster num-gpu param single compile-args json", cmd_config_get},
        {"set", 1, SIZE_MAX, "set KEY VALUE | KEY=VALUE...", "cluster dry-run json", cmd_config_set},
        {"unset", 1, 1, "unset KEY", "cluster dry-run json", cmd_config_unset},
    };
    enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };
    char *const *words = cli->words.v;
    const char *names[N_VERBS + 1] = {0};
    size_t i = 0;

    for (; i < N_VERBS && strcmp(verbs[i].name, words[0]) != 0; i++)
        names[i] = verbs[i].name;
    if (i == N_VERBS) {
        ACT_AUTOFREE char *then = cli_did_you_mean(act_nearest(words[0], names));
        return act_error_set(err, ACT_USAGE, "'a config' cannot '%s'%s'a config --help' has examples", words[0], then);
    }
    int rc = check_usage(cli, &verbs[i], err);
    return rc < 0 ? rc : verbs[i].run(cli, words + 1, err);
}
