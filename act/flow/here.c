/* here.c - a run on this machine uses a mapped folder of the project where it is, when the store has nothing for it. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/path.h"
#include "flow/flow_internal.h"

/* Whether there is a folder with something in it. */
static bool has_content(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *e = NULL;

    while (dir && (e = readdir(dir)) && (act_streq(e->d_name, ".") || act_streq(e->d_name, "..")))
        ;
    if (dir)
        closedir(dir);
    return e != NULL;
}

void flow_use_here(const struct config *config, struct run_folder *folder)
{
    ACT_AUTOFREE char *own = act_path_join(config->project_root, folder->name);

    if (!act_streq(config->platform, "local") || !folder->link || !has_content(own))
        return;
    if (has_content(folder->link)) {
        if (!config->file) /* whoever wrote a cluster file knows */
            act_note("%s  what the store has, not the project's own folder; 'a u %s' stores that",
                     folder->name, folder->name);
        return;
    }
    act_note("%s  the project's own folder, as the store has none; 'a u %s' stores it", folder->name,
             folder->name);
    free(folder->store);
    folder->store = act_sprintf("folder:%s", config->project_root);
    act_str_replace(&folder->path, folder->name);
    act_str_replace(&folder->link, own);
}
