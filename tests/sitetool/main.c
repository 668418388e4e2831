/* main.c - sitetool LOGIN ROOT [look] ("-": this machine; look: nothing is brought there): does to a site what the
 * lines of its input say, and answers each with a line of JSON: {"rc", "error"} and what came of it. The first answer
 * is that of the opening.
 *
 *   agent | create [PACKAGE] | list | run SCRIPT | shell SCRIPT
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "site/site.h"

static int do_agent(struct site *site, const char *word, json_t *answer, struct act_error *err)
{
    ACT_AUTOFREE char *path = NULL;
    int rc = site_agent(site, &path, err);

    (void)word;
    json_object_set_new(answer, "path", rc < 0 ? json_null() : json_string(path));
    return rc;
}

static int do_create(struct site *site, const char *package, json_t *answer, struct act_error *err)
{
    struct run_spec spec = {
        .id = run_id_new("tool", act_now_unix_s()),
        .experiment = act_strdup("tool"),
        .cluster = act_strdup("lab"),
        .platform = act_strdup("slurm"),
        .nodes = 1,
        .procs_per_node = 1,
    };
    bool existed = false;

    act_strv_push(&spec.argv, "true");
    int rc =
        site_create_run(site, &(struct site_new){.spec = &spec, .package = *package ? package : NULL}, &existed, err);
    json_object_set_new(answer, "id", json_string(spec.id));
    run_spec_release(&spec);
    return rc;
}

static int sitetool_do_list(struct site *site, const char *word, json_t *answer, struct act_error *err)
{
    struct act_strv ids = {0};
    int rc = site_list(site, &ids, err);

    (void)word;
    json_object_set_new(answer, "ids", codec_json_strv_new(&ids));
    act_strv_release(&ids);
    return rc;
}

static int do_run(struct site *site, const char *script, json_t *answer, struct act_error *err)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct site_result result;
    int rc = site_run(site, &(struct site_command){.argv = argv}, &result, err);

    if (rc == 0) {
        json_object_set_new(answer, "out", codec_json_bytes_new(result.out));
        json_object_set_new(answer, "err", codec_json_bytes_new(result.err));
        json_object_set_new(answer, "status", json_integer(result.status));
    }
    site_result_release(&result);
    return rc;
}

static int do_shell(struct site *site, const char *script, json_t *answer, struct act_error *err)
{
    struct act_strv argv = {0}, words = {0};

    (void)err;
    act_strv_push(&argv, "sh");
    act_strv_push(&argv, "-c");
    act_strv_push(&argv, script);
    site_shell_words(site, &argv, &words);
    json_object_set_new(answer, "words", codec_json_strv_new(&words));
    act_strv_release(&argv);
    act_strv_release(&words);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct site *site, const char *rest, json_t *answer, struct act_error *err);
} verbs[] = {
    {"agent", do_agent}, {"create", do_create}, {"list", sitetool_do_list}, {"run", do_run}, {"shell", do_shell},
};

/* Takes the reference of answer. */
static void print_answer(json_t *answer, int rc, const struct act_error *err)
{
    json_object_set_new(answer, "rc", json_integer(rc));
    json_object_set_new(answer, "error", codec_json_bytes_new(rc < 0 ? act_error_text(err) : ""));
    ACT_AUTOFREE char *text = codec_json_line(answer);
    json_decref(answer);
    puts(text);
    fflush(stdout);
}

static void obey(struct site *site, char *line)
{
    char *rest = line, *verb = strsep(&rest, " ");
    json_t *answer = json_object();
    struct act_error err;
    int rc = act_error_set(&err, ACT_USAGE, "there is no '%s'", verb);

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verb, verbs[i].name) == 0)
            rc = verbs[i].run(site, rest ? rest : "", answer, &err);
    print_answer(answer, rc, &err);
}

int main(int argc, char **argv)
{
    struct site *site = NULL;
    struct act_error err;
    char line[4096];

    if (argc != 3 && argc != 4)
        return ACT_USAGE;
    const struct site_options options = {
        .login = strcmp(argv[1], "-") == 0 ? NULL : argv[1], .root = argv[2], .only_look = argc > 3};
    int rc = site_open(&options, &site, &err);
    print_answer(json_object(), rc, &err);
    while (rc == 0 && fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        obey(site, line);
    }
    site_free(site);
    return -rc;
}
