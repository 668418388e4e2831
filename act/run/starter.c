/* starter.c - the starters as data: how they are called, and which options they take. */
#include "run/starter.h"

#include <string.h>

#include "base/path.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

enum value { NODES, PER_NODE, TOTAL, NODE_RANK, ADDRESS, PORT, ENDPOINT, ID, HOSTS, FLAG, STANDARD };

enum when {
    ALWAYS,
    SEVERAL,  /* nodes */
    ALL_GPUS, /* of the node are the run's, or there are several nodes */
    NEVER     /* known, because the user may write it */
};

/* One option. Lists are names with blanks between them. */
struct word {
    const char *option;
    enum value value;
    enum when when;
    const char *unless; /* the user has written one of these */
    const char *with;   /* the user has not written this; NULL: it does not matter */
};

enum { WORDS_MAX = 10 };

struct starter_kind {
    bool needs_gpus;
    const char *alone; /* options without a value */
    struct word words[WORDS_MAX];
};

/* torchrun meets at the master's address if it has no backend; a named one needs an endpoint. --standalone overrides
 * all its other rendezvous options. */
static const struct starter_kind torchrun = {
    .alone = "standalone m module no_python run_path use_env h help",
    .words =
        {
            {"nnodes", NODES, ALWAYS, "standalone", NULL},
            {"nproc_per_node", PER_NODE, ALWAYS, "", NULL},
            {"node_rank", NODE_RANK, ALWAYS, "standalone", NULL},
            {"master_addr", ADDRESS, ALWAYS, "standalone rdzv_endpoint rdzv_backend", NULL},
            {"master_port", PORT, ALWAYS, "standalone rdzv_endpoint rdzv_backend", NULL},
            {"rdzv_endpoint", ENDPOINT, ALWAYS, "standalone", "rdzv_backend"},
            {"rdzv_id", ID, ALWAYS, "standalone", "rdzv_backend"},
        },
};

/* On processors it starts one process only, and counts the others as Open MPI does: then mpirun starts it. With
 * DeepSpeed it would reach the other nodes by pdsh, unless its launcher is the standard one. */
static const struct starter_kind accelerate = {
    .needs_gpus = true,
    .alone = "h help q quiet cpu multi_gpu tpu enable_cpu_affinity dynamo_use_fullgraph dynamo_use_dynamic "
             "dynamo_use_regional_compilation use_deepspeed use_fsdp use_parallelism_config use_megatron_lm "
             "same_network m module no_python tpu_cluster no_tpu_cluster tpu_use_sudo downcast_bf16 "
             "fp8_use_autocast_during_eval debug",
    .words =
        {
            {"num_machines", NODES, ALWAYS, "", NULL},
            {"num_processes", TOTAL, ALWAYS, "", NULL},
            {"machine_rank", NODE_RANK, ALWAYS, "", NULL},
            {"main_process_ip", ADDRESS, ALWAYS, "", NULL},
            {"main_process_port", PORT, ALWAYS, "", NULL},
            {"deepspeed_multinode_launcher", STANDARD, SEVERAL, "", NULL},
        },
};

/* With a number it takes the first GPUs of the node, whatever CUDA_VISIBLE_DEVICES says. It learns of several nodes
 * from a hostfile only; with --no_ssh it counts them and connects to none. */
static const struct starter_kind deepspeed = {
    .alone = "h help module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid elastic_training "
             "bind_cores_to_rank",
    .words =
        {
            {"num_gpus", PER_NODE, ALL_GPUS, "num_accelerators include i exclude e", NULL},
            {"num_accelerators", PER_NODE, NEVER, "", NULL},
            {"num_nodes", NODES, NEVER, "", NULL},
            {"hostfile", HOSTS, SEVERAL, "H", NULL},
            {"no_ssh", FLAG, SEVERAL, "", NULL},
            {"node_rank", NODE_RANK, SEVERAL, "", NULL},
            {"master_addr", ADDRESS, SEVERAL, "", NULL},
            {"master_port", PORT, ALWAYS, "", NULL},
        },
};

static const struct {
    const char *word, *next;
    bool is_module; /* of Python */
    const struct starter_kind *kind;
} calls[] = {
    {"torchrun", NULL, false, &torchrun},
    {"torch.distributed.run", NULL, true, &torchrun},
    {"torch.distributed.launch", NULL, true, &torchrun},
    {"accelerate", "launch", false, &accelerate},
    {"accelerate-launch", NULL, false, &accelerate},
    {"accelerate.commands.launch", NULL, true, &accelerate},
    {"accelerate.commands.accelerate_cli", "launch", true, &accelerate},
    {"deepspeed", NULL, false, &deepspeed},
    {"deepspeed.launcher.runner", NULL, true, &deepspeed},
};

/* ---- options ---- */

/* Writes the name of the option that a word is, with "_" for "-", into size bytes; empty: it is not an option. */
static void option_name(const char *word, char *out, size_t size)
{
    bool is_long = word[0] == '-' && word[1] == '-';
    size_t len = word[0] != '-' ? 0 : is_long ? strcspn(word + 2, "=") : 1;

    len = len < size ? len : size - 1;
    memcpy(out, word + (is_long ? 2 : 1), len);
    out[len] = '\0';
    for (char *c = out; *c; c++)
        *c = *c == '-' ? '_' : *c;
}

static bool list_has(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, name, len) == 0)
            return true;
        at += n;
    }
    return false;
}

enum { NAME_MAX_BYTES = 64 };

/* Returns how many words an option takes: itself, and its value. */
static size_t option_words(const struct starter_kind *kind, const char *word)
{
    char name[NAME_MAX_BYTES];
    bool is_short = word[1] != '-';

    option_name(word, name, sizeof(name));
    bool holds_value = is_short ? word[2] != '\0' : strchr(word, '=') != NULL;
    return holds_value || list_has(kind->alone, name) ? 1 : 2;
}

static bool starter_is_option(const char *word)
{
    return word[0] == '-' && word[1] && strcmp(word, "--") != 0;
}

/* Returns the position of the program that the starter starts. */
static size_t starter_find_end(const struct starter_kind *kind, const struct act_strv *argv, size_t first)
{
    size_t i = first;

    while (i < argv->n && starter_is_option(argv->v[i]))
        i += option_words(kind, argv->v[i]);
    return i < argv->n ? i : argv->n;
}

/* Returns the value of an option as the user wrote it last, empty for one without; NULL: it is not there. */
static const char *find_option(const struct run_starter *s, const struct act_strv *argv, const char *option)
{
    const char *value = NULL;
    size_t words;

    for (size_t i = s->first; i < s->end; i += words) {
        char name[NAME_MAX_BYTES];
        const char *word = argv->v[i], *equals = strchr(word, '=');
        option_name(word, name, sizeof(name));
        words = option_words(s->kind, word);
        if (strcmp(name, option) == 0)
            value = words == 2 && i + 1 < argv->n ? argv->v[i + 1] : equals ? equals + 1 : "";
    }
    return value;
}

bool run_starter_has(const struct run_starter *s, const struct act_strv *argv, const char *list)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        ACT_AUTOFREE char *name = act_strndup(at, n);
        if (find_option(s, argv, name))
            return true;
        at += n;
    }
    return false;
}

/* ---- how it is called ---- */

static bool is_python(const char *word)
{
    static const char python[] = "python";
    const char *name = act_path_basename(word);

    return act_starts_with(name, python) &&
           strspn(name + strlen(python), "0123456789.") == strlen(name + strlen(python));
}

/* Returns where the module's name is in "python -u -m torch.distributed.run"; 0: there is none. */
static size_t find_module(const struct act_strv *argv)
{
    size_t i = 1;

    while (i < argv->n && starter_is_option(argv->v[i]) && strcmp(argv->v[i], "-m") != 0)
        i += strcmp(argv->v[i], "-W") == 0 || strcmp(argv->v[i], "-X") == 0 ? 2 : 1;
    return i + 1 < argv->n && is_python(argv->v[0]) && strcmp(argv->v[i], "-m") == 0 ? i + 1 : 0;
}

bool run_starter_find(const struct act_strv *argv, bool has_gpus, struct run_starter *out)
{
    size_t word = argv->n ? find_module(argv) : 0;
    bool module = word > 0;

    for (size_t i = 0; argv->n && i < COUNT_OF(calls); i++) {
        const char *name = module ? argv->v[word] : act_path_basename(argv->v[word]);
        const char *next = word + 1 < argv->n ? argv->v[word + 1] : "";
        if (calls[i].is_module != module || strcmp(name, calls[i].word) != 0 ||
            (calls[i].next && strcmp(next, calls[i].next) != 0) || (calls[i].kind->needs_gpus && !has_gpus))
            continue;
        size_t first = word + 1 + (calls[i].next != NULL);
        *out = (struct run_starter){.name = calls[i].word,
                                    .kind = calls[i].kind,
                                    .first = first,
                                    .end = starter_find_end(calls[i].kind, argv, first)};
        return true;
    }
    return false;
}

/* ---- what is filled in ---- */

static bool is_missing(const struct run_starter *s, const struct word *w, const struct run_starter_place *p,
                       const struct act_strv *argv)
{
    const bool now[] = {
        [ALWAYS] = true, [SEVERAL] = p->nodes > 1, [ALL_GPUS] = p->nodes > 1 || !p->narrowed, [NEVER] = false};

    return now[w->when] && !find_option(s, argv, w->option) && !run_starter_has(s, argv, w->unless) &&
           (!w->with || find_option(s, argv, w->with));
}

static void push_word(const struct word *w, const struct run_starter_place *p, struct act_strv *out)
{
    const int numbers[] = {
        [NODES] = p->nodes, [PER_NODE] = p->per_node, [TOTAL] = p->nodes * p->per_node, [NODE_RANK] = p->node_rank};
    const char *const texts[] = {
        [ADDRESS] = p->address, [PORT] = p->port, [ID] = p->id, [HOSTS] = p->hosts, [STANDARD] = "standard"};

    if (w->value <= NODE_RANK)
        act_strv_pushf(out, "--%s=%d", w->option, numbers[w->value]);
    else if (w->value == FLAG)
        act_strv_pushf(out, "--%s", w->option);
    else if (w->value == ENDPOINT)
        act_strv_pushf(out, "--%s=%s:%s", w->option, p->address, p->port);
    else
        act_strv_pushf(out, "--%s=%s", w->option, texts[w->value]);
}

void run_starter_fill(const struct run_starter *starter, const struct run_starter_place *place, struct act_strv *argv)
{
    struct act_strv out = {0};

    act_strv_copy(&out, argv->v, starter->first);
    for (size_t i = 0; i < WORDS_MAX && starter->kind->words[i].option; i++)
        if (is_missing(starter, &starter->kind->words[i], place, argv))
            push_word(&starter->kind->words[i], place, &out);
    act_strv_copy(&out, argv->v + starter->first, argv->n - starter->first);
    act_strv_release(argv);
    *argv = out;
}

const char *run_starter_written(const struct run_starter *starter, const struct act_strv *argv,
                                enum run_starter_number number, const char **out_option)
{
    static const enum value values[] = {
        [RUN_STARTER_NODES] = NODES, [RUN_STARTER_PER_NODE] = PER_NODE, [RUN_STARTER_TOTAL] = TOTAL};

    for (size_t i = 0; i < WORDS_MAX && starter->kind->words[i].option; i++) {
        const struct word *w = &starter->kind->words[i];
        const char *text = w->value == values[number] ? find_option(starter, argv, w->option) : NULL;
        if (text) {
            *out_option = w->option;
            return text;
        }
    }
    return NULL;
}
