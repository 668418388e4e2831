/* form.c - the forms that the text of a key may have to have. */
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "config/kind.h"

static bool is_duration(const char *text)
{
    int64_t seconds;

    return act_duration_from_text(text, &seconds) && seconds > 0 && !act_int_from_text(text, &seconds);
}

static bool is_duration_or_zero(const char *text)
{
    int64_t seconds, bare;

    return act_duration_from_text(text, &seconds) && (seconds == 0 || !act_int_from_text(text, &bare));
}

/* Returns the readings of a number without a unit, a new string, or NULL. */
static char *form_duration_readings(const char *text)
{
    int64_t n;

    return act_int_from_text(text, &n) && n > 0 ? act_sprintf("%llds or %lldm", (long long)n, (long long)n) : NULL;
}

static bool is_quantity(const char *text)
{
    return act_quantity_from_text(text) > 0;
}

const struct config_form config_duration = {
    .wanted = "a duration such as 90s, 20m, 24h or 7d",
    .pattern = "^0*[1-9][0-9]*[smhd]$",
    .fits = is_duration,
    .readings = form_duration_readings,
};

const struct config_form config_duration_or_zero = {
    .wanted = "a duration such as 30m or 2h, or 0s",
    .pattern = "^(0|[0-9]+[smhd])$",
    .fits = is_duration_or_zero,
    .readings = form_duration_readings,
};

const struct config_form config_quantity = {
    .wanted = "a quantity as Kubernetes takes it (16, 500m, 200Gi)",
    .pattern = "^\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$",
    .takes_numbers = true,
    .fits = is_quantity,
};
