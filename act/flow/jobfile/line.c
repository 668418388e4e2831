/* line.c - what the parts of a job file have in common: notes, texts, and how they are written into the line. */
#include <stdarg.h>
#include <string.h>

#include "codec/json.h"
#include "config/config.h"
#include "flow/jobfile/build.h"

void job_note(struct job_build *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    act_strv_take(&b->out->notes, act_vsprintf(fmt, ap));
    va_end(ap);
}

const char *job_text(const json_t *object, const char *member)
{
    return codec_json_str(object, member, NULL);
}

char *job_secret(const json_t *object, const char *member, const char *reference)
{
    const char *text = job_text(object, member), *url = job_text(json_object_get(object, reference), "secretUrl");

    return text || !url ? act_strdup(text) : act_sprintf(CONFIG_KEYVAULT "%s", url);
}

void job_add_quoted(struct act_buf *line, const char *text)
{
    act_buf_addc(line, '"');
    for (; *text; text++) {
        if (strchr("\"`", *text) || (*text == '\\' && text[1] != '$'))
            act_buf_addc(line, '\\');
        act_buf_addc(line, *text);
    }
    act_buf_addc(line, '"');
}

void job_add_interpreter(struct act_buf *line, const json_t *settings)
{
    const char *interpreter = job_text(settings, "pythonInterpreterPath");

    if (interpreter)
        job_add_quoted(line, interpreter);
    else
        act_buf_adds(line, "python");
}

void job_add_script(struct act_buf *line, const json_t *settings, const char *arguments)
{
    const char *text = job_text(settings, arguments);

    job_add_interpreter(line, settings);
    act_buf_addc(line, ' ');
    job_add_quoted(line, job_text(settings, "pythonScriptFilePath"));
    if (text)
        act_buf_addf(line, " %s", text);
}
