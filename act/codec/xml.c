#include "codec/xml.h"

#include <expat.h>
#include <string.h>

#include "base/text.h"

enum {
    MAX_DEPTH = 64,
    MAX_TEXT_BYTES = 64 << 10,
    MAX_PATH_BYTES = 4 << 10,
    FEED_BYTES = 1 << 20, /* expat counts in int */
};

struct xml {
    XML_Parser parser;
    const char *name;
    const struct xml_handler *handler;
    void *arg;
    struct act_buf path;
    struct act_buf texts[MAX_DEPTH + 1]; /* the text directly inside each open element */
    size_t depth;
    int rc; /* once it is set, no handler is called any more */
    struct act_error *err;
};

/* Ends the parsing with rc. */
static void xml_stop(struct xml *x, int rc)
{
    x->rc = rc;
    XML_StopParser(x->parser, XML_FALSE);
}

static void refuse_xml(struct xml *x, const char *why)
{
    xml_stop(x, act_error_set(x->err, ACT_FAIL, "%s:%lu:%lu: %s", x->name, XML_GetCurrentLineNumber(x->parser),
                              XML_GetCurrentColumnNumber(x->parser) + 1, why));
}

static void on_start(void *arg, const XML_Char *element, const XML_Char **attributes)
{
    struct xml *x = arg;

    if (x->rc < 0)
        return;
    if (x->depth == MAX_DEPTH)
        return refuse_xml(x, "elements are nested too deeply");
    if (x->path.len + strlen(element) >= MAX_PATH_BYTES)
        return refuse_xml(x, "an element name is too long");
    act_buf_addc(&x->path, '/');
    act_buf_adds(&x->path, element);
    x->texts[++x->depth].len = 0;
    int rc = x->handler->start ? x->handler->start(x->arg, x->path.data, attributes, x->err) : 0;
    if (rc < 0)
        xml_stop(x, rc);
}

static void xml_on_end(void *arg, const XML_Char *element)
{
    struct xml *x = arg;

    if (x->rc < 0)
        return;
    struct act_buf *text = &x->texts[x->depth];
    act_buf_add(text, "", 0); /* so that there is a NUL, also when there was no text */
    int rc = x->handler->end ? x->handler->end(x->arg, x->path.data, text->data, x->err) : 0;
    if (rc < 0)
        return xml_stop(x, rc);
    x->path.len -= strlen(element) + 1;
    x->path.data[x->path.len] = '\0';
    x->depth--;
}

static void on_text(void *arg, const XML_Char *text, int len)
{
    struct xml *x = arg;
    struct act_buf *all = &x->texts[x->depth];

    if (x->rc < 0)
        return;
    if (all->len + (size_t)len > MAX_TEXT_BYTES)
        return refuse_xml(x, "the text of an element is too long");
    act_buf_add(all, text, (size_t)len);
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *sysid, const XML_Char *pubid,
                       int has_internal_subset)
{
    struct xml *x = arg;

    (void)name;
    (void)sysid;
    (void)pubid;
    (void)has_internal_subset;
    if (x->rc == 0)
        refuse_xml(x, "a document type declaration is not allowed");
}

static void xml_feed(struct xml *x, const char *text, size_t len)
{
    bool last;

    do {
        size_t part = len < FEED_BYTES ? len : FEED_BYTES;
        last = part == len;
        if (XML_Parse(x->parser, text, (int)part, last) != XML_STATUS_OK) {
            if (x->rc == 0)
                refuse_xml(x, XML_ErrorString(XML_GetErrorCode(x->parser)));
            return;
        }
        text += part;
        len -= part;
    } while (!last);
}

int xml_parse(const char *text, size_t len, const char *name, const struct xml_handler *handler, void *arg,
              struct act_error *err)
{
    struct xml x = {.name = name, .handler = handler, .arg = arg, .err = err};

    x.parser = XML_ParserCreate(NULL);
    if (!x.parser)
        return act_error_set(err, ACT_FAIL, "%s: not enough memory", name);
    XML_SetUserData(x.parser, &x);
    XML_SetElementHandler(x.parser, on_start, xml_on_end);
    XML_SetCharacterDataHandler(x.parser, on_text);
    XML_SetStartDoctypeDeclHandler(x.parser, on_doctype);
    xml_feed(&x, text, len);
    XML_ParserFree(x.parser);
    act_buf_release(&x.path);
    for (size_t i = 0; i <= MAX_DEPTH; i++)
        act_buf_release(&x.texts[i]);
    return x.rc;
}
