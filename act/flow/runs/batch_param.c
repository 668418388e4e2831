/* batch_param.c - what "python src/....py -bp BASE64" was given: its parameters are YAML in base64, as the original
 * ACT's users wrote it and its queries decoded it. And the toolkit of a job file of Azure Batch AI.
 */
#include <regex.h>
#include <string.h>

#include "codec/yaml.h"
#include "flow/jobfile/jobfile.h"
#include "flow/runs/runs.h"

/* The word after -bp. New string; NULL: none. */
static char *encoded(const char *command)
{
    static const char form[] = "python[0-9.]* (scripts|src)/.*\\.py -bp ([A-Za-z0-9+/=]+)";
    enum { WORD = 2, GROUPS };
    regmatch_t found[GROUPS];
    char *word = NULL;
    regex_t regex;

    if (!strstr(command, " -bp ") || regcomp(&regex, form, REG_EXTENDED) != 0)
        return NULL;
    if (regexec(&regex, command, GROUPS, found, 0) == 0)
        word = act_strndup(command + found[WORD].rm_so, (size_t)(found[WORD].rm_eo - found[WORD].rm_so));
    regfree(&regex);
    return word;
}

char *flow_batch_param(const struct act_strv *argv)
{
    ACT_AUTO(act_buf) command = {0};
    struct yaml *tree = NULL;
    size_t len = 0;

    for (size_t i = 0; i < argv->n; i++)
        act_buf_addf(&command, "%s%s", i ? " " : "", argv->v[i]);
    ACT_AUTOFREE char *word = command.len > 0 ? encoded(command.data) : NULL;
    ACT_AUTOFREE char *bytes = word ? (char *)act_base64_decode(word, &len) : NULL;
    bool good = bytes && yaml_parse(bytes, len, "-bp", &tree, NULL) == 0 && tree->kind == YAML_MAP && tree->n > 0;
    yaml_tree_free(tree);
    while (good && len > 0 && bytes[len - 1] == '\n')
        len--;
    return good ? act_strndup(bytes, len) : NULL;
}

char *flow_tool(const struct run_spec *spec)
{
    return flow_job_tool(spec->title);
}
