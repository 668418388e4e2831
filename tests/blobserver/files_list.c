/* files_list.c - List Shares, List Directories and Files. */
#include "files_service.h"
#include "service.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct listing {
    struct text *out;
    bool times, etag, attributes, key; /* what was asked for */
};

static void blob_files_list_add_time(struct text *t, const char *element, int64_t ticks)
{
    char text[FILE_TIME];

    file_time(ticks, text);
    text_addf(t, "<%s>%s</%s>", element, text, element);
}

static void blob_files_list_add_properties(const struct listing *l, const struct node *node)
{
    struct text *t = l->out;
    char date[RFC1123];

    text_str(t, "<Properties>");
    if (!node->directory)
        text_addf(t, "<Content-Length>%llu</Content-Length>", (unsigned long long)node->version->content->n);
    if (l->times) {
        blob_files_list_add_time(t, "CreationTime", node->created);
        blob_files_list_add_time(t, "LastAccessTime", node->written);
        blob_files_list_add_time(t, "LastWriteTime", node->written);
        blob_files_list_add_time(t, "ChangeTime", node->changed);
        date_http(node->version->modified, date);
        text_addf(t, "<Last-Modified>%s</Last-Modified>", date);
    }
    if (l->etag)
        text_addf(t, "<Etag>\"0x%llX\"</Etag>", (unsigned long long)node->version->etag);
    text_str(t, "</Properties>");
}

static void blob_files_list_add_node(const struct listing *l, const struct node *node)
{
    const char *element = node->directory ? "Directory" : "File";
    struct text *t = l->out;
    bool extended = l->times || l->etag || l->attributes || l->key;

    text_addf(t, "<%s>", element);
    list_name(t, node->name);
    if (extended)
        text_addf(t, "<FileId>%llu</FileId>", (unsigned long long)node->id);
    blob_files_list_add_properties(l, node);
    if (l->attributes)
        text_addf(t, "<Attributes>%s</Attributes>", node->attributes);
    if (l->key)
        text_str(t, "<PermissionKey>" PERMISSION_KEY "</PermissionKey>");
    text_addf(t, "</%s>", element);
}

static void blob_files_list_add_head(const struct request *r, struct text *t)
{
    text_addf(t,
              "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"http://localhost/%s/\"",
              r->account);
    if (*r->container) {
        text_addf(t, " ShareName=\"%s\" DirectoryPath=\"", r->container);
        text_xml(t, r->blob);
        text_str(t, "\"");
    }
    text_str(t, ">");
    list_element(t, "Prefix", param(r, "prefix"));
    list_element(t, "Marker", param(r, "marker"));
    if (*param(r, "maxresults"))
        list_element(t, "MaxResults", param(r, "maxresults"));
}

static bool blob_files_list_starts_with(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

int list_directory(struct request *r, struct reply *reply)
{
    struct node *directory = its_directory(r, reply);
    const char *include = param(r, "include"), *marker = param(r, "marker");
    struct text *t = &reply->body;
    char start[1024];

    if (!directory)
        return reply->status;
    long max = list_page_size(r);
    if (!max)
        return reply_error(reply, 400, "OutOfRangeQueryParameterValue");
    if (*marker && !list_read_marker(marker, start, sizeof(start)))
        return reply_error(reply, 400, "InvalidQueryParameterValue");
    struct listing l = {t, strcasestr(include, "Timestamps"), strcasestr(include, "ETag"),
                        strcasestr(include, "Attributes"), strcasestr(include, "PermissionKey")};
    char *prefix = name_key(param(r, "prefix"));
    size_t begin = node_seek(directory, prefix), first = *marker ? node_seek(directory, start) : begin, i = first;
    blob_files_list_add_head(r, t);
    if (l.times || l.etag || l.attributes || l.key)
        text_addf(t, "<DirectoryId>%llu</DirectoryId>", (unsigned long long)directory->id);
    text_str(t, "<Entries>");
    if (r->page == PAGE_ENDLESS)
        list_endless(t, "File", "", *marker ? start : "", start, sizeof(start));
    for (long n = 0; r->page != PAGE_EMPTY && r->page != PAGE_ENDLESS && n < max && i < directory->n &&
                     blob_files_list_starts_with(directory->children[i]->key, prefix);
         n++)
        blob_files_list_add_node(&l, directory->children[i++]);
    text_str(t, "</Entries><NextMarker>");
    if (r->page == PAGE_REPEAT)
        i = first;
    else if (r->page == PAGE_LOOP)
        i = begin + (*marker && first == begin);
    if (r->page == PAGE_ENDLESS)
        list_marker(t, start);
    else if (i < directory->n && blob_files_list_starts_with(directory->children[i]->key, prefix))
        list_marker(t, directory->children[i]->key);
    text_str(t, "</NextMarker></EnumerationResults>");
    free(prefix);
    reply_header(reply, "Content-Type", "application/xml");
    return reply->status = 200;
}

int list_shares(struct request *r, struct reply *reply)
{
    struct text *t = &reply->body;
    char date[RFC1123];

    blob_files_list_add_head(r, t);
    text_str(t, "<Shares>");
    for (const struct share *s = share_first(); s; s = s->next) {
        if (strcmp(s->account, r->account) != 0 || !blob_files_list_starts_with(s->name, param(r, "prefix")))
            continue;
        date_http(s->modified, date);
        text_addf(t,
                  "<Share><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>\"0x%llX\"</Etag>"
                  "<Quota>%u</Quota><AccessTier>TransactionOptimized</AccessTier><LeaseStatus>unlocked</LeaseStatus>"
                  "<LeaseState>available</LeaseState></Properties></Share>",
                  s->name, date, (unsigned long long)s->etag, s->quota_gib);
    }
    text_str(t, "</Shares><NextMarker/></EnumerationResults>");
    reply_header(reply, "Content-Type", "application/xml");
    return reply->status = 200;
}
