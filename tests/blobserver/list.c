/* list.c - List Blobs and List Containers. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 5000 };

struct listing {
    struct text *out;
    const char *prefix, *delimiter;
    bool metadata, uncommitted;
    const struct version *last; /* whose properties are at [from, to) of out: the next ones are often the same */
    size_t last_from, last_to;
    int64_t date;
    char date_text[RFC1123];
};

/* Characters that XML 1.0 cannot hold: control characters, U+FFFE, U+FFFF. */
static bool xml_can_hold(const char *name)
{
    for (const unsigned char *s = (const unsigned char *)name; *s; s++)
        if ((*s < 0x20 && *s != '\t' && *s != '\n' && *s != '\r') ||
            (*s == 0xef && s[1] == 0xbf && (s[2] == 0xbe || s[2] == 0xbf)))
            return false;
    return true;
}

void list_name(struct text *t, const char *name)
{
    if (xml_can_hold(name)) {
        text_str(t, "<Name>");
        text_xml(t, name);
    } else {
        text_str(t, "<Name Encoded=\"true\">");
        for (const unsigned char *s = (const unsigned char *)name; *s; s++)
            if ((*s >= '0' && *s <= '9') || ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z') || strchr("-._~/", *s))
                text_add(t, s, 1);
            else
                text_addf(t, "%%%02X", *s);
    }
    text_str(t, "</Name>");
}

static const char *date_of(struct listing *l, int64_t when)
{
    if (when != l->date || !*l->date_text)
        date_http(l->date = when, l->date_text);
    return l->date_text;
}

void list_element(struct text *t, const char *name, const char *value)
{
    if (!value || !*value) {
        text_addf(t, "<%s/>", name);
        return;
    }
    text_addf(t, "<%s>", name);
    text_xml(t, value);
    text_addf(t, "</%s>", name);
}

static void blob_list_add_properties(struct listing *l, const struct version *v)
{
    struct text *t = l->out;

    text_str(t, "<Properties><Creation-Time>");
    text_str(t, date_of(l, v->created));
    text_str(t, "</Creation-Time><Last-Modified>");
    text_str(t, date_of(l, v->modified));
    text_addf(t, "</Last-Modified><Etag>0x%llX</Etag><Content-Length>", (unsigned long long)v->etag);
    text_number(t, v->content->n);
    text_str(t, "</Content-Length>");
    list_element(t, "Content-Type", v->props[PROP_TYPE]);
    list_element(t, "Content-Encoding", v->props[PROP_ENCODING]);
    list_element(t, "Content-Language", v->props[PROP_LANGUAGE]);
    text_str(t, "<Content-CRC64/>");
    list_element(t, "Content-MD5", v->props[PROP_MD5]);
    list_element(t, "Cache-Control", v->props[PROP_CACHE]);
    list_element(t, "Content-Disposition", v->props[PROP_DISPOSITION]);
    if (v->type == APPEND_BLOB)
        text_str(t, "<BlobType>AppendBlob</BlobType>");
    else
        text_addf(t, "<BlobType>BlockBlob</BlobType><AccessTier>%s</AccessTier>", *v->tier ? v->tier : "Hot");
    text_str(t, "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
                "<ServerEncrypted>true</ServerEncrypted></Properties>");
    if (!l->metadata)
        return;
    text_str(t, v->meta.n ? "<Metadata>" : "<Metadata/>");
    for (const char *s = v->meta.s; s && s < v->meta.s + v->meta.n; s += strlen(s) + 1) {
        const char *name = s;
        s += strlen(s) + 1;
        list_element(t, name, s);
    }
    text_str(t, v->meta.n ? "</Metadata>" : "");
}

static void blob_list_add(struct listing *l, const struct entry *e)
{
    struct text *t = l->out;

    text_str(t, "<Blob>");
    list_name(t, e->name);
    if (!e->current) {
        text_str(t, "<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType></Properties>");
    } else if (e->current == l->last) {
        text_room(t, l->last_to - l->last_from);
        text_add(t, t->s + l->last_from, l->last_to - l->last_from);
    } else {
        l->last_from = t->n;
        blob_list_add_properties(l, e->current);
        l->last_to = t->n;
        l->last = e->current;
    }
    text_str(t, "</Blob>");
}

/* Adds what the entry at the cursor stands for and moves behind it. Returns whether something was added. */
static bool add_next(struct listing *l, struct cursor *at)
{
    const struct entry *e = entry_at(at);

    if (!e->current && !l->uncommitted) {
        entry_next(at);
        return false;
    }
    const char *end = *l->delimiter ? strstr(e->name + strlen(l->prefix), l->delimiter) : NULL;
    if (!end) {
        blob_list_add(l, e);
        entry_next(at);
        return true;
    }
    struct text folder = {0};
    text_add(&folder, e->name, (size_t)(end - e->name) + strlen(l->delimiter));
    text_str(l->out, "<BlobPrefix>");
    list_name(l->out, folder.s);
    text_str(l->out, "</BlobPrefix>");
    folder.s[folder.n - 1]++; /* the first name that does not start with it */
    *at = entry_seek(at->container, folder.s);
    text_free(&folder);
    return true;
}

void list_marker(struct text *t, const char *name)
{
    size_t n = strlen(name);

    text_str(t, "2!");
    text_room(t, (n + 2) / 3 * 4 + 1);
    base64_encode(name, n, t->s + t->n);
    t->n += strlen(t->s + t->n);
}

void list_endless(struct text *t, const char *element, const char *prefix, const char *start, char *out, size_t cap)
{
    long n = *start ? strtol(start + strlen(prefix), NULL, 10) + 1 : 0;

    snprintf(out, cap, "%s%012ld", prefix, n);
    text_addf(t, "<%s><Name>%s</Name><Properties><Content-Length>1</Content-Length></Properties></%s>", element, out,
              element);
}

bool list_read_marker(const char *marker, char *name, size_t cap)
{
    long n = strncmp(marker, "2!", 2) ? -1 : base64_decode(marker + 2, name, cap - 1);

    if (n < 0)
        return false;
    name[n] = '\0';
    return true;
}

static bool blob_list_has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *s = list; (s = strstr(s, word)); s += n)
        if ((s == list || s[-1] == ',') && (!s[n] || s[n] == ','))
            return true;
    return false;
}

static bool blob_list_starts_with(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

long list_page_size(const struct request *r)
{
    const char *text = param(r, "maxresults");
    long n = *text ? strtol(text, NULL, 10) : PAGE;

    return n < 0 ? 0 : n > PAGE ? PAGE : n;
}

static void blob_list_add_head(const struct request *r, struct text *t)
{
    text_addf(t,
              "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults "
              "ServiceEndpoint=\"http://localhost/%s/\" ContainerName=\"%s\">",
              r->account, r->container);
    list_element(t, "Prefix", param(r, "prefix"));
    list_element(t, "Marker", param(r, "marker"));
    if (*param(r, "maxresults"))
        list_element(t, "MaxResults", param(r, "maxresults"));
    if (*param(r, "delimiter"))
        list_element(t, "Delimiter", param(r, "delimiter"));
}

int list_blobs(struct request *r, struct reply *reply)
{
    struct container *c = its_container(r, reply);
    struct listing l = {.out = &reply->body, .prefix = param(r, "prefix"), .delimiter = param(r, "delimiter")};
    const char *marker = param(r, "marker");
    char start[4200];

    if (!c)
        return reply->status;
    long max = list_page_size(r);
    if (!max)
        return reply_error(reply, 400, "OutOfRangeQueryParameterValue");
    if (*marker && !list_read_marker(marker, start, sizeof(start)))
        return reply_error(reply, 400, "InvalidQueryParameterValue");
    l.metadata = blob_list_has_word(param(r, "include"), "metadata");
    l.uncommitted = blob_list_has_word(param(r, "include"), "uncommittedblobs");
    struct cursor begin = entry_seek(c, l.prefix), at = *marker ? entry_seek(c, start) : begin, first = at;
    blob_list_add_head(r, l.out);
    text_str(l.out, "<Blobs>");
    const struct entry *e;
    if (r->page == PAGE_ENDLESS)
        list_endless(l.out, "Blob", l.prefix, *marker ? start : "", start, sizeof(start));
    for (long n = 0; r->page != PAGE_EMPTY && r->page != PAGE_ENDLESS && n < max && (e = entry_at(&at)) &&
                     blob_list_starts_with(e->name, l.prefix);)
        n += add_next(&l, &at);
    text_str(l.out, "</Blobs><NextMarker>");
    if (r->page == PAGE_LOOP && *marker && entry_at(&first) == entry_at(&begin))
        entry_next(&begin);
    e = entry_at(r->page == PAGE_REPEAT ? &first : r->page == PAGE_LOOP ? &begin : &at);
    if (r->page == PAGE_ENDLESS)
        list_marker(l.out, start);
    else if (e && blob_list_starts_with(e->name, l.prefix))
        list_marker(l.out, e->name);
    text_str(l.out, "</NextMarker></EnumerationResults>");
    reply_header(reply, "Content-Type", "application/xml");
    return reply->status = 200;
}

int list_containers(struct request *r, struct reply *reply)
{
    struct text *t = &reply->body;
    char date[RFC1123];

    text_addf(t,
              "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults "
              "ServiceEndpoint=\"http://localhost/%s/\"><Containers>",
              r->account);
    for (const struct container *c = container_first(); c; c = c->next) {
        if (strcmp(c->account, r->account) != 0 || !blob_list_starts_with(c->name, param(r, "prefix")))
            continue;
        date_http(c->modified, date);
        text_addf(t,
                  "<Container><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>\"0x%llX\"</Etag>"
                  "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties></Container>",
                  c->name, date, (unsigned long long)c->etag);
    }
    text_str(t, "</Containers><NextMarker/></EnumerationResults>");
    reply_header(reply, "Content-Type", "application/xml");
    return reply->status = 200;
}
