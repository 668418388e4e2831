/* users.c - who uses the GPUs, from what nvidia-smi prints. What is a fact about a process is read in one place,
 * users_look(). */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "base/user.h"
#include "gpus/gpus_internal.h"

static const int64_t mib = 1 << 20;

/* ---- lines with commas */

static char *users_trim(char *text)
{
    text += strspn(text, " \t\r");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* Splits off what is before the next comma. */
static char *users_field(char **rest)
{
    char *field = strsep(rest, ",");

    return field ? users_trim(field) : NULL;
}

/* Splits off what is behind the last comma. */
static char *users_last_field(char *text)
{
    char *comma = text ? strrchr(text, ',') : NULL;

    if (!comma)
        return NULL;
    *comma = '\0';
    return users_trim(comma + 1);
}

/* A number of MiB as bytes; -1: "[N/A]" and the like. */
static int64_t users_bytes(const char *text)
{
    int64_t n;

    return text && act_int_from_text(text, &n) && n >= 0 && n < INT64_MAX / mib ? n * mib : -1;
}

static void users_each_line(char *text, struct gpu_list *list, void (*take)(char *line, struct gpu_list *list))
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n")))
        take(line, list);
}

/* ---- the cards */

/* uuid: the driver's files need not have said it. */
static struct gpu *find_card(struct gpu_list *list, int64_t index, const char *uuid)
{
    for (size_t i = 0; *uuid && i < list->n; i++)
        if (list->v[i].kind == GPU_NVIDIA && strcmp(list->v[i].uuid, uuid) == 0)
            return &list->v[i];
    for (size_t i = 0; index >= 0 && i < list->n; i++)
        if (list->v[i].kind == GPU_NVIDIA && list->v[i].index == index && !*list->v[i].uuid)
            return &list->v[i];
    return NULL;
}

/* "0, GPU-..., NVIDIA H100, 3, 81559, Disabled" */
static void take_card(char *line, struct gpu_list *list)
{
    const char *fields[6] = {0};
    int64_t index;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!(fields[i] = users_field(&line)))
            return;
    struct gpu *gpu = act_int_from_text(fields[0], &index) ? find_card(list, index, fields[1]) : NULL;
    if (!gpu)
        return;
    act_str_replace(&gpu->uuid, fields[1]);
    act_str_replace(&gpu->model, fields[2]);
    gpu->used_bytes = users_bytes(fields[3]);
    gpu->memory_bytes = users_bytes(fields[4]);
}

void gpus_take_memory(char *text, struct gpu_list *list)
{
    users_each_line(text, list, take_card);
}

/* ---- the processes */

static int64_t uptime_s(void)
{
    ACT_AUTOFREE char *text = NULL;
    enum { MAX_BYTES = 256 };

    return act_file_read("/proc/uptime", MAX_BYTES, &text, NULL, NULL) < 0 ? -1 : strtoll(text, NULL, 10);
}

/* Returns for how long a process has been running, by its 22nd field in stat (proc(5)); -1: not known. */
static int64_t users_age_s(pid_t pid)
{
    enum { MAX_BYTES = 4096, STARTED = 22, STATE = 3 };
    ACT_AUTOFREE char *path = act_sprintf("/proc/%d/stat", (int)pid);
    ACT_AUTOFREE char *text = NULL;
    int64_t now = uptime_s();

    if (now < 0 || act_file_read(path, MAX_BYTES, &text, NULL, NULL) < 0)
        return -1;
    const char *at = strrchr(text, ')'); /* its name may have anything in it */
    for (int field = STATE - 1; at && field < STARTED; field++) {
        at = strchr(at + 1, ' ');
    }
    int64_t started = at ? strtoll(at, NULL, 10) / sysconf(_SC_CLK_TCK) : -1;
    return started >= 0 && now >= started ? now - started : -1;
}

/* Completes what is known of a process: its user, and for how long it has been running. */
static void users_look(struct gpu_user *user)
{
    ACT_AUTOFREE char *dir = act_sprintf("/proc/%d", (int)user->pid);
    struct stat st;

    user->for_s = -1;
    if (user->pid <= 0 || stat(dir, &st) < 0)
        return;
    user->user = act_user_name(st.st_uid);
    user->is_mine = st.st_uid == geteuid();
    user->for_s = users_age_s(user->pid);
}

void users_add(struct gpu *gpu, pid_t pid, const char *program, int64_t memory_bytes)
{
    struct gpu_user user = {.pid = pid, .program = act_printable(program), .memory_bytes = memory_bytes};

    users_look(&user);
    ACT_PUSH(gpu->users, gpu->n_users, user);
}

/* "GPU-..., 4711, /usr/bin/python3, 31000"; a program's name may have commas. */
static void take_user(char *line, struct gpu_list *list)
{
    const char *memory = users_last_field(line), *uuid = users_field(&line), *pid_text = users_field(&line);
    int64_t pid;

    if (!memory || !pid_text || !line || !act_int_from_text(pid_text, &pid) || pid < 0 || pid > INT32_MAX)
        return;
    struct gpu *gpu = find_card(list, -1, uuid);
    if (gpu)
        users_add(gpu, (pid_t)pid, act_path_basename(users_trim(line)), users_bytes(memory));
}

void gpus_take_users(char *text, struct gpu_list *list)
{
    users_each_line(text, list, take_user);
}

/* ---- instances of MIG */

/* The UUIDs of instances come below the line of their card, in the order of the instances. */
void gpus_take_instances(char *text, struct gpu_list *list)
{
    char *rest = text, *line;
    int card = -1;
    size_t at = 0;

    while ((line = strsep(&rest, "\n"))) {
        char *uuid = strstr(line, "(UUID: MIG-");
        if (sscanf(line, "GPU %d:", &card) == 1) {
            at = 0;
            continue;
        }
        if (!uuid)
            continue;
        uuid += strlen("(UUID: ");
        uuid[strcspn(uuid, ")")] = '\0';
        while (at < list->n && (list->v[at].kind != GPU_MIG || list->v[at].index != card))
            at++;
        if (at < list->n)
            act_str_replace(&list->v[at++].uuid, uuid);
    }
}

/* ---- how near they are */

/* Returns the rank of a distance as 'nvidia-smi topo -m' calls it, from the nearest; NV# are so many NVLinks. */
static int users_distance(const char *word)
{
    static const char *const names[] = {"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (i == 1 ? act_starts_with(word, names[i]) && isdigit((unsigned char)word[2]) : strcmp(word, names[i]) == 0)
            return (int)i;
    return -1;
}

/* Fills a row with the distances behind "GPU3"; false if there are not so many. */
static bool users_take_row(char *line, struct gpu_list *list)
{
    char *rest, *word = strtok_r(line, " \t\r", &rest);
    int from = -1, end = 0;

    if (!word || sscanf(word, "GPU%d%n", &from, &end) != 1 || word[end] || from < 0 || (size_t)from >= list->n_near)
        return false;
    for (size_t i = 0; i < list->n_near; i++) {
        word = strtok_r(NULL, " \t\r", &rest);
        int near = word ? users_distance(word) : -1;
        if (near < 0)
            return false;
        list->near[(size_t)from * list->n_near + i] = near;
    }
    return true;
}

/* How many cards the heading has. */
static size_t topology_columns(const char *heading)
{
    ACT_AUTOFREE char *copy = act_strdup(heading);
    char *rest, *word = strtok_r(copy, " \t\r", &rest);
    size_t n = 0;

    for (; word && act_starts_with(word, "GPU") && isdigit((unsigned char)word[3]);
         word = strtok_r(NULL, " \t\r", &rest))
        n++;
    return n;
}

/* Removes what draws lines under the heading. */
static void remove_escapes(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from == '\033' && from[1] == '[') {
            from += strcspn(from, "mK");
            if (!*from)
                break;
            continue;
        }
        *to++ = *from;
    }
    *to = '\0';
}

void gpus_take_topology(char *text, struct gpu_list *list)
{
    enum { CARDS_MAX = 64 };
    char *rest = text, *line;
    size_t rows = 0;

    remove_escapes(text);
    while ((line = strsep(&rest, "\n"))) {
        size_t n = list->near ? 0 : topology_columns(line);
        if (n > 0 && n <= CARDS_MAX) {
            list->near = act_calloc(n * n, sizeof(int));
            list->n_near = n;
        } else if (list->near) {
            rows += users_take_row(line, list);
        }
    }
    if (rows == list->n_near)
        return;
    free(list->near);
    list->near = NULL;
    list->n_near = 0;
}

/* ---- for people */

/* "31 GiB", as people say it. */
static void users_add_size(struct act_buf *text, int64_t bytes)
{
    static const int64_t gib = 1 << 30;

    if (bytes >= gib)
        act_buf_addf(text, ", %lld GiB", (long long)((bytes + gib / 2) / gib));
    else if (bytes >= 0)
        act_buf_addf(text, ", %lld MiB", (long long)(bytes / mib));
}

/* "alice, python, 31 GiB, 4 h" */
static void users_add_words(struct act_buf *text, const struct gpu_user *user)
{
    char age[ACT_UNIT_TEXT];

    act_buf_addf(text, "%s%s%s", user->user ? user->user : "", user->user && *user->program ? ", " : "", user->program);
    users_add_size(text, user->memory_bytes);
    if (user->for_s < 0)
        return;
    act_duration_to_words(user->for_s, age); /* so that it does not change all the time */
    act_buf_addf(text, ", %s", age);
}

/* Returns the user with the most memory. */
static const struct gpu_user *users_largest(const struct gpu *gpu, bool mine)
{
    const struct gpu_user *found = NULL;

    for (size_t i = 0; i < gpu->n_users; i++)
        if (gpu->users[i].is_mine == mine && (!found || gpu->users[i].memory_bytes > found->memory_bytes))
            found = &gpu->users[i];
    return found;
}

static bool is_full(const struct gpu *gpu, int free_percent)
{
    return gpu->used_bytes >= 0 && gpu->memory_bytes > 0 &&
           gpu->used_bytes > gpu->memory_bytes / 100 * (int64_t)free_percent;
}

char *gpus_why_busy(const struct gpu *gpu, int free_percent)
{
    const struct gpu_user *other = users_largest(gpu, false), *mine = users_largest(gpu, true);
    struct act_buf text = {0};

    if (!other && !is_full(gpu, free_percent))
        return NULL;
    ACT_AUTOFREE char *name = gpus_name(gpu);
    if (other) {
        act_buf_addf(&text, "%s is used by %s (", name,
                     other->user ? "another user" : "a process that is not seen here");
        users_add_words(&text, other);
    } else if (mine) {
        act_buf_addf(&text, "%s is used by a process of yours (", name);
        users_add_words(&text, mine);
    } else {
        act_buf_addf(&text, "%s is used by a process that is not seen here (", name);
        users_add_size(&text, gpu->used_bytes);
    }
    act_buf_adds(&text, ")");
    char *words = act_buf_steal(&text), *empty = strstr(words, "(, ");
    if (empty) /* nothing is known before the memory */
        memmove(empty + 1, empty + 3, strlen(empty + 3) + 1);
    return words;
}

char *gpus_users_text(const struct gpu *gpu)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < gpu->n_users; i++) {
        act_buf_adds(&text, text.len ? "; " : "");
        users_add_words(&text, &gpu->users[i]);
    }
    return act_buf_steal(&text);
}
