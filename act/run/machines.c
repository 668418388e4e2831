#include "run/machines.h"

#include <unistd.h>

#include "base/hash.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"

enum { TOKEN_HEX = 64, MACHINES_MOST = 4096, PORT_MOST = 65535, RECORD_MAX = 1 << 20 };

static bool machines_is_token(const char *text)
{
    return act_is_hex(text, TOKEN_HEX);
}

static int machines_check(const void *record, struct act_error *err)
{
    const struct run_machines *m = record;
    size_t n = m->names.n;

    return n > 1 && m->address.n == n && m->order.n == n && (size_t)m->index < n
               ? 0
               : act_error_set(err, ACT_FAIL, "the record of the run's machines is not whole");
}

static const struct field machines_rows[] = {
    FIELD_VERSION(1, FIELD_REQUIRED),
    FIELD_INT(struct run_machines, index, "index", .max = MACHINES_MOST, .flags = FIELD_REQUIRED),
    FIELD_INT(struct run_machines, port, "port", .min = 1, .max = PORT_MOST, .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct run_machines, token, "token", .flags = FIELD_REQUIRED | FIELD_SECRET, .good = machines_is_token,
               .must = "64 hex digits"),
    FIELD_TEXTS(struct run_machines, names, "names", .flags = FIELD_REQUIRED),
    FIELD_TEXTS(struct run_machines, address, "addresses", .flags = FIELD_REQUIRED),
    FIELD_TEXTS(struct run_machines, order, "order", .flags = FIELD_REQUIRED),
};
const struct fields run_machines_fields =
    FIELDS("the record of the run's machines", struct run_machines, machines_rows, machines_check);

bool run_has_machines(const char *dir)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MACHINES);

    return access(path, F_OK) == 0;
}

int run_machines_read(const char *dir, struct run_machines *out, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, RUN_FILE_MACHINES);
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_read(path, RECORD_MAX, &json, err);

    fields_init(&run_machines_fields, out);
    return rc < 0 ? rc : fields_from_json(&run_machines_fields, json, out, err);
}

void run_machines_release(struct run_machines *machines)
{
    fields_release(&run_machines_fields, machines);
}
