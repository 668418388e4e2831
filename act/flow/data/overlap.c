/* overlap.c - mapped folders that lie inside one another in the store. That is legal, and configurations of the
 * original ACT do it; but deleting in the outer folder would delete the content of the inner one. */
#include <string.h>
#include <unicase.h>

#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"

/* Host and container or share. New string. */
static char *service_place(const struct config_folder *folder, const struct config_account *a)
{
    if (config_is_share(folder))
        return act_path_join(a->file_endpoint ? a->file_endpoint : "share", folder->file_share);
    return act_path_join(a->endpoint, a->container_name ? a->container_name : "");
}

/* Returns what is the same for all spellings of a name that a share takes for one, as a new string. */
static char *without_capitals(const char *text)
{
    size_t len = 0;
    uint8_t *folded = u8_casefold((const uint8_t *)text, strlen(text) + 1, NULL, NULL, NULL, &len);
    char *out = act_strdup(folded ? (const char *)folded : text); /* NULL: it is not UTF-8, and no name of a share */

    free(folded);
    return out;
}

/* The place of a path in the store of a row, for comparison with another: a real folder, or host, container and key.
 * New string; NULL: it cannot be determined, and the row cannot be used either. */
static char *overlap_place_of(const struct config *config, const struct config_folder *folder, const char *path)
{
    struct config_account a;

    if (!folder->account_file || !folder->path || !config_account_peek(config, folder, &a))
        return NULL;
    ACT_AUTOFREE char *store = a.folder ? act_strdup(a.folder) : service_place(folder, &a);
    ACT_AUTOFREE char *place = act_path_join(store, path);
    bool is_here = a.folder != NULL;
    size_t len = strlen(place);

    config_account_release(&a);
    if (len > 0 && place[len - 1] == '/')
        place[len - 1] = '\0';
    if (is_here)
        return flow_real_place(place);
    return config_is_share(folder) ? without_capitals(place) : act_strdup(place);
}

static bool overlap_lies_in(const struct config *config, const struct config_folder *folder, const char *path,
                            const char *place)
{
    ACT_AUTOFREE char *there = overlap_place_of(config, folder, path);

    return there && act_path_is_within(there, place);
}

/* Returns the name of another row of the configuration that lies at the place or below it, or NULL. */
static const char *overlap_find_in(const struct config *config, const struct config_folder *own, const char *place)
{
    const struct config_folder *code = &config->code;

    for (size_t i = 0; i < config->n_folders; i++) {
        const struct config_folder *other = &config->folders[i];
        if (other != own && overlap_lies_in(config, other, other->path, place))
            return other->name;
    }
    if (!code->path)
        return NULL;
    ACT_AUTOFREE char *packages = flow_code_base(config);
    return overlap_lies_in(config, code, code->path, place) || overlap_lies_in(config, code, packages, place)
               ? "code_path"
               : NULL;
}

int flow_check_alone(const struct config *config, const struct config_folder *folder, const char *key, const char *path,
                     struct act_error *err)
{
    ACT_AUTOFREE char *place = overlap_place_of(config, folder, key);
    const char *other = place ? overlap_find_in(config, folder, place) : NULL;

    if (!other)
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "cannot delete in '%s': in the store '%s' lies in it, and would be deleted as well; "
                         "name what is to go ('%s/...'), or give each folder a 'path' of its own",
                         path, other, folder->name);
}

void flow_warn_overlaps(const struct config *config)
{
    for (size_t i = 0; i < config->n_folders; i++) {
        const struct config_folder *folder = &config->folders[i];
        ACT_AUTOFREE char *place = overlap_place_of(config, folder, folder->path);
        const char *other = place ? overlap_find_in(config, folder, place) : NULL;
        if (other)
            act_warn("in the store '%s' lies in '%s': nothing is deleted in '%s' as a whole", other, folder->name,
                     folder->name);
    }
}
