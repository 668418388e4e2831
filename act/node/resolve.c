#include "node/resolve.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"

static bool resolve_has_word(char *line, const char *name)
{
    for (const char *word; (word = strsep(&line, " \t"));)
        if (strcasecmp(word, name) == 0)
            return true;
    return false;
}

void resolve_in_hosts(const char *hosts, const char *name, struct act_strv *out)
{
    ACT_AUTOFREE char *text = act_strdup(hosts);
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n"));) {
        line[strcspn(line, "#\r")] = '\0';
        line += strspn(line, " \t");
        const char *address = strsep(&line, " \t");
        if (line && resolve_has_word(line, name) && !act_strv_has(out, address))
            act_strv_push(out, address);
    }
}

void resolve_in_answer(const uint8_t *bytes, int len, int type, struct act_strv *out)
{
    int family = type == (int)ns_t_aaaa ? AF_INET6 : AF_INET;
    size_t size = family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
    char text[INET6_ADDRSTRLEN];
    ns_msg answer;
    ns_rr record;

    if (ns_initparse(bytes, len, &answer) < 0)
        return;
    for (int i = 0; i < ns_msg_count(answer, ns_s_an) && ns_parserr(&answer, ns_s_an, i, &record) == 0; i++)
        if ((int)ns_rr_type(record) == type && ns_rr_rdlen(record) == size &&
            inet_ntop(family, ns_rr_rdata(record), text, sizeof(text)))
            act_strv_push(out, text);
}

static void resolve_ask(struct __res_state *state, const char *name, int type, struct act_strv *out)
{
    enum { ANSWER_MAX = 64 * 1024 };
    ACT_AUTOFREE uint8_t *answer = act_alloc(ANSWER_MAX);
    int len = res_nsearch(state, name, ns_c_in, type, answer, ANSWER_MAX);

    if (len > 0 && len <= ANSWER_MAX)
        resolve_in_answer(answer, len, type, out);
}

void resolve_host(const char *name, struct act_strv *out)
{
    enum { HOSTS_MAX = 16 * 1024 * 1024, ANSWER_S = 2, TRIES = 2 };
    ACT_AUTOFREE char *hosts = NULL;
    struct __res_state state = {0};

    if (act_file_read("/etc/hosts", HOSTS_MAX, &hosts, NULL, NULL) == 0)
        resolve_in_hosts(hosts, name, out);
    if (out->n > 0 || res_ninit(&state) < 0)
        return;
    state.retrans = ANSWER_S;
    state.retry = TRIES;
    resolve_ask(&state, name, ns_t_a, out);
    resolve_ask(&state, name, ns_t_aaaa, out);
    res_nclose(&state);
}
