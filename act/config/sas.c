/* sas.c - what was copied for a SAS and is none. No message quotes it.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/create-service-sas (sig is base64, encoded for a URL). That the
 * service reads a raw '+' as a blank and refuses the signature: github.com/Azure/azure-sdk-for-js/issues/9353,
 * github.com/nteract/papermill/issues/447.
 */
#include <string.h>
#include <strings.h>

#include "config/config_internal.h"

#define CONNECTION_PART "SharedAccessSignature="

/* Returns the value of 'sig', which ends at '&' or the end; NULL: there is none. */
static const char *signature_in(const char *sas)
{
    static const char name[] = "sig=";

    for (const char *field = sas; field; field = strchr(field, '&')) {
        field += *field == '&';
        if (act_starts_with(field, name))
            return field + strlen(name);
    }
    return NULL;
}

static bool signature_has(const char *sas, const char *text)
{
    const char *value = signature_in(sas);

    return value && memmem(value, strcspn(value, "&"), text, strlen(text));
}

static bool is_url(const char *sas)
{
    return strncasecmp(sas, "https://", strlen("https://")) == 0 || strncasecmp(sas, "http://", strlen("http://")) == 0;
}

static bool is_connection_string(const char *sas)
{
    return strcasestr(sas, CONNECTION_PART) != NULL;
}

static bool has_quotes(const char *sas)
{
    return strpbrk(sas, "\"'`") != NULL;
}

static bool has_entities(const char *sas)
{
    return strstr(sas, "&amp;") != NULL;
}

static bool has_other_form(const char *sas)
{
    return !strchr(sas, '=') || strpbrk(sas, " \t\r\n");
}

static bool has_no_signature(const char *sas)
{
    const char *value = signature_in(sas);

    return !value || strcspn(value, "&") == 0;
}

static bool has_raw_plus(const char *sas)
{
    return signature_has(sas, "+");
}

static bool is_encoded_twice(const char *sas)
{
    return signature_has(sas, "%25");
}

/* The first that holds says it best. */
static const struct {
    bool (*holds)(const char *sas);
    const char *why;
} faults[] = {
    {is_connection_string, "'sas_token' is a connection string: only what follows '" CONNECTION_PART "' in it, up to "
                           "the next ';', belongs here"},
    {has_quotes, "'sas_token' has quotes in it, which are no part of a SAS; leave them out"},
    {is_url, "'sas_token' is a whole URL: only what follows its '?' belongs here"},
    {has_entities, "'sas_token' has '&amp;' in it, as copied from a page; it must be '&'"},
    {has_other_form, "'sas_token' is not of the form 'sv=...&sig=...'"},
    {has_no_signature,
     "'sas_token' is not of the form 'sv=...&sig=...': there is nothing for 'sig', copy it as a whole"},
    {has_raw_plus, "the 'sig' of 'sas_token' has a '+' in it, which the service reads as a blank; write '%2B' for it"},
    {is_encoded_twice, "the 'sig' of 'sas_token' was encoded twice; write '%2B' for '%252B', '%2F' for '%252F' and "
                       "'%3D' for '%253D'"},
};

void config_check_sas(char *sas, const struct yaml *at, struct config_findings *f)
{
    if (*sas == '?')
        memmove(sas, sas + 1, strlen(sas));
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (faults[i].holds(sas)) {
            config_problem(f, at, "%s", faults[i].why);
            return;
        }
}
