/* merge.c - adding the entries of one kubeconfig to the text of another, whose comments and order stay.
 *
 * The lists are edited as lines of text, which goes for the block form that kubectl and the Azure CLI write. What comes
 * out is read again and compared: a form that this does not do right is refused, and nothing is lost.
 */
#include <string.h>

#include "base/dirs.h"
#include "base/path.h"
#include "kube/kubeconfig.h"

static const struct kube_kind kinds[] = {{"clusters", "cluster"}, {"contexts", "context"}, {"users", "user"}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), STEP = 2 };

char *kube_config_file(const char *named)
{
    const char *list = getenv("KUBECONFIG");

    if (named)
        return act_strdup(named);
    while (list && *list == ':')
        list++;
    if (list && *list)
        return act_strndup(list, strcspn(list, ":"));
    ACT_AUTOFREE char *home = act_home_dir();
    return act_path_join(home, ".kube/config");
}

void kube_addition_release(struct kube_addition *a)
{
    act_wipe(&a->text);
    free(a->context);
    act_strv_release(&a->replaced);
    *a = (struct kube_addition){0};
}

/* ---- looking at trees ---- */

/* Returns the entry of this name in a list; NULL: there is none. */
static const struct yaml *entry_of(const struct yaml *list, const char *name)
{
    for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n; i++) {
        const struct yaml *its_name = list->items[i]->kind == YAML_MAP ? yaml_get(list->items[i], "name") : NULL;
        if (its_name && its_name->kind == YAML_SCALAR && strcmp(its_name->text, name) == 0)
            return list->items[i];
    }
    return NULL;
}

/* ---- writing an entry in block form ---- */

static void put_string(struct act_buf *out, const char *text)
{
    json_t *string = codec_json_bytes_new(text);
    ACT_AUTOWIPE char *quoted = json_dumps(string, JSON_ENCODE_ANY);

    act_buf_adds(out, quoted);
    json_decref(string);
}

static void put_scalar(struct act_buf *out, const struct yaml *value)
{
    if (value->quoted || strchr(value->text, '\n'))
        put_string(out, value->text);
    else
        act_buf_adds(out, *value->text ? value->text : "null");
    act_buf_adds(out, "\n");
}

static void indent(struct act_buf *out, size_t n)
{
    act_buf_addf(out, "%*s", (int)n, "");
}

static void kube_merge_put_key(struct act_buf *out, const char *key)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";

    if (*key && *key != '-' && strspn(key, plain) == strlen(key))
        act_buf_adds(out, key);
    else
        put_string(out, key);
    act_buf_adds(out, ":");
}

static void kube_merge_put_value(struct act_buf *out, const struct yaml *value, size_t depth);

/* Writes the members of a map, of which the first continues the line that the caller began. */
static void put_map(struct act_buf *out, const struct yaml *map, size_t depth)
{
    for (size_t i = 0; i < map->n; i++) {
        if (i > 0)
            indent(out, depth);
        kube_merge_put_key(out, map->items[i]->key);
        kube_merge_put_value(out, map->items[i], depth);
    }
}

static void put_item(struct act_buf *out, const struct yaml *item, size_t depth)
{
    indent(out, depth);
    act_buf_adds(out, "- ");
    if (item->kind == YAML_MAP)
        put_map(out, item, depth + STEP);
    else
        put_scalar(out, item);
}

static void kube_merge_put_value(struct act_buf *out, const struct yaml *value, size_t depth)
{
    if (value->kind == YAML_SCALAR) {
        act_buf_adds(out, " ");
        put_scalar(out, value);
    } else if (value->n == 0) {
        act_buf_adds(out, value->kind == YAML_MAP ? " {}\n" : " []\n");
    } else if (value->kind == YAML_MAP) {
        act_buf_adds(out, "\n");
        indent(out, depth + STEP);
        put_map(out, value, depth + STEP);
    } else {
        act_buf_adds(out, "\n");
        for (size_t i = 0; i < value->n; i++)
            put_item(out, value->items[i], depth);
    }
}

/* ---- the lines of a text ---- */

/* Returns where a line begins, counted from 1; the end of the text for one past the last. */
static size_t start_of(const char *text, int line)
{
    const char *at = text;

    for (; line > 1 && *at; line--)
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
    return (size_t)(at - text);
}

/* Returns where an item of a list ends, whose '-' is in this column from 0: before the next thing that is indented no
 * deeper. Blank lines and comments after it belong to what follows. */
static size_t end_of_item(const char *text, size_t start, size_t dash)
{
    size_t end = start;

    for (size_t at = start; text[at];) {
        size_t len = strcspn(text + at, "\n"), column = strspn(text + at, " ");
        bool says_something = column < len && text[at + column] != '#';
        if (at > start && says_something && column <= dash)
            break;
        at += len + (text[at + len] == '\n');
        if (says_something)
            end = at;
    }
    return end;
}

/* Finds the column, from 0, of the '-' before an item. Returns false if it is not the first on its line. */
static bool find_dash(const char *text, const struct yaml *item, size_t *out)
{
    const char *line = text + start_of(text, item->line);

    *out = strspn(line, " ");
    return item->kind == YAML_MAP && line[*out] == '-' &&
           *out + 1 + strspn(line + *out + 1, " ") + 1 == (size_t)item->column;
}

static void kube_merge_replace(char **text, size_t from, size_t to, const char *with)
{
    const char *gap = from > 0 && (*text)[from - 1] != '\n' ? "\n" : "";
    char *out = act_sprintf("%.*s%s%s%s", (int)from, *text, gap, with, *text + to);

    act_wipe(text);
    *text = out;
}

/* ---- one entry ---- */

static int refuse_form(const char *name, const char *list, struct act_error *err)
{
    return act_error_set(err, ACT_CONFIG,
                         "cannot add to '%s' in '%s': it is not written as kubectl writes it; name another file by "
                         "'k8s.kubeconfig'",
                         list, name);
}

/* Puts the entry into a list that has entries, in the place of the one of this name if there is one. */
static int put_in_list(char **text, const char *name, const struct kube_kind *kind, const struct yaml *list,
                       const struct yaml *entry, struct act_error *err)
{
    const struct yaml *old = entry_of(list, yaml_get(entry, "name")->text), *at = old ? old : list->items[list->n - 1];
    ACT_AUTO(act_buf) block = {0};
    size_t dash;

    if (!find_dash(*text, at, &dash))
        return refuse_form(name, kind->list, err);
    size_t start = start_of(*text, at->line), end = end_of_item(*text, start, dash);
    put_item(&block, entry, dash);
    kube_merge_replace(text, old ? start : end, end, block.data);
    act_buf_wipe(&block);
    return 0;
}

/* Puts the entry into a list that is not there, or empty. */
static void kube_merge_put_list(char **text, const struct kube_kind *kind, const struct yaml *list,
                                const struct yaml *entry)
{
    ACT_AUTO(act_buf) block = {0};
    size_t len = strlen(*text), from = list ? start_of(*text, list->line) : len,
           to = list ? start_of(*text, list->line + 1) : len;

    act_buf_addf(&block, "%s:\n", kind->list);
    put_item(&block, entry, 0);
    kube_merge_replace(text, from, to, block.data);
    act_buf_wipe(&block);
}

static int kube_merge_add_entry(char **text, const char *name, const struct kube_kind *kind, const struct yaml *entry,
                                struct kube_addition *out, struct act_error *err)
{
    const struct yaml *list = NULL, *its_name = entry->kind == YAML_MAP ? yaml_get(entry, "name") : NULL;
    struct yaml *tree = NULL;
    int rc = 0;

    if (!its_name || its_name->kind != YAML_SCALAR)
        return yaml_error(entry, err, "an entry of '%s' has no name", kind->list);
    rc = yaml_parse(*text, strlen(*text), name, &tree, err);
    if (rc == 0)
        rc = kube_part_of(tree, kind->list, YAML_LIST, &list, err);
    const struct yaml *old = rc == 0 ? entry_of(list, its_name->text) : NULL;
    if (old && !yaml_is_same(old, entry))
        act_strv_pushf(&out->replaced, "%s '%s'", kind->part, its_name->text);
    if (rc == 0 && !(old && yaml_is_same(old, entry))) {
        out->is_new = true;
        if (list && list->n)
            rc = put_in_list(text, name, kind, list, entry, err);
        else
            kube_merge_put_list(text, kind, yaml_get(tree, kind->list), entry);
    }
    yaml_tree_free(tree);
    return rc;
}

/* ---- all of it ---- */

/* Chooses the context that kubectl takes without --context, unless one is chosen. */
static int kube_merge_choose_context(char **text, const char *name, const char *context, struct act_error *err)
{
    struct yaml *tree = NULL;
    int rc = yaml_parse(*text, strlen(*text), name, &tree, err);
    const struct yaml *current = rc == 0 ? yaml_get(tree, "current-context") : NULL;
    ACT_AUTO(act_buf) line = {0};

    if (rc == 0 && (!current || yaml_is_null(current) || (current->kind == YAML_SCALAR && !*current->text))) {
        size_t len = strlen(*text);
        act_buf_adds(&line, "current-context: ");
        put_string(&line, context);
        act_buf_adds(&line, "\n");
        kube_merge_replace(text, current ? start_of(*text, current->line) : len,
                           current ? start_of(*text, current->line + 1) : len, line.data);
    }
    yaml_tree_free(tree);
    return rc;
}

/* Tells whether a list has what it had, except the entries that are in added too, which are as they are there. */
static bool is_kept(const struct kube_kind *kind, const struct yaml *old, const struct yaml *added,
                    const struct yaml *now)
{
    const struct yaml *before = yaml_get(old, kind->list), *more = yaml_get(added, kind->list),
                      *all = yaml_get(now, kind->list);

    for (size_t i = 0; more && i < more->n; i++) {
        const struct yaml *found = entry_of(all, yaml_get(more->items[i], "name")->text);
        if (!found || !yaml_is_same(found, more->items[i]))
            return false;
    }
    for (size_t i = 0; before && i < before->n; i++) {
        const struct yaml *name = yaml_get(before->items[i], "name");
        if (!name || entry_of(more, name->text))
            continue;
        const struct yaml *found = entry_of(all, name->text);
        if (!found || !yaml_is_same(found, before->items[i]))
            return false;
    }
    return true;
}

static bool is_list_name(const char *key)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].list, key) == 0)
            return true;
    return strcmp(key, "current-context") == 0;
}

static int kube_merge_check(const char *text, const char *name, const struct yaml *old, const struct yaml *added,
                            struct act_error *err)
{
    struct yaml *now = NULL;
    int rc = yaml_parse(text, strlen(text), name, &now, NULL) < 0 || now->kind != YAML_MAP
                 ? refuse_form(name, kinds[0].list, err)
                 : 0;

    for (size_t i = 0; rc == 0 && i < KINDS; i++)
        if (!is_kept(&kinds[i], old, added, now))
            rc = refuse_form(name, kinds[i].list, err);
    for (size_t i = 0; rc == 0 && i < old->n; i++) {
        const char *key = old->items[i]->key;
        const struct yaml *kept = yaml_get(now, key);
        if (!is_list_name(key) && !(kept && yaml_is_same(kept, old->items[i])))
            rc = refuse_form(name, key, err);
    }
    yaml_tree_free(now);
    return rc;
}

static int add_all(const struct yaml *added, const char *name, struct kube_addition *out, struct act_error *err)
{
    const char *context = NULL;
    int rc = kube_text_of(added, "current-context", &context, err);

    for (size_t k = 0; rc == 0 && k < KINDS; k++) {
        const struct yaml *list = NULL;
        rc = kube_part_of(added, kinds[k].list, YAML_LIST, &list, err);
        for (size_t i = 0; rc == 0 && list && i < list->n; i++)
            rc = kube_merge_add_entry(&out->text, name, &kinds[k], list->items[i], out, err);
    }
    if (rc == 0 && !context)
        rc = act_error_set(err, ACT_FAIL, "the kubeconfig of the service names no context");
    if (rc == 0) {
        out->context = act_strdup(context);
        rc = kube_merge_choose_context(&out->text, name, context, err);
    }
    return rc;
}

int kube_config_add(const char *text, const char *name, const char *added, struct kube_addition *out,
                    struct act_error *err)
{
    struct yaml *old = NULL, *more = NULL;
    int rc = yaml_parse(text ? text : "", text ? strlen(text) : 0, name, &old, err);

    *out = (struct kube_addition){0};
    if (rc == 0)
        rc = yaml_parse(added, strlen(added), "the kubeconfig of the service", &more, err);
    if (rc == 0 && (old->kind != YAML_MAP || more->kind != YAML_MAP))
        rc = yaml_error(old->kind != YAML_MAP ? old : more, err, "this is no kubeconfig");
    if (rc == 0) {
        out->text = act_strdup(text && old->n ? text : "apiVersion: v1\nkind: Config\n");
        rc = add_all(more, name, out, err);
    }
    if (rc == 0)
        rc = kube_merge_check(out->text, name, old, more, err);
    yaml_tree_free(old);
    yaml_tree_free(more);
    if (rc < 0)
        kube_addition_release(out);
    return rc;
}
