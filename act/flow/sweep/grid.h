/* grid.h - the points of a sweep: every combination of the values of its grids, "lr=1e-3,1e-4" and "layers=2,4". Pure.
 *
 * In the words of a command "{lr}" stands for the value of grid lr, "{{" for "{" and "}}" for "}"; a brace that is
 * neither is an error, so that nothing is replaced, or left, by accident. Points are never made before they are needed:
 * there may be a million of them. */
#ifndef ACT_FLOW_SWEEP_GRID_H
#define ACT_FLOW_SWEEP_GRID_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define FLOW_SWEEP_TAG "sweep" /* of all runs of a sweep, so no grid is called that */

enum { FLOW_POINTS_MAX = 1000000 };

struct flow_grid {
    char *name;
    struct act_strv values;
};

struct flow_grids {
    struct flow_grid *v;
    size_t n;
    int64_t points; /* how many combinations there are */
};

/* Reads grids from texts, each "NAME=VALUE,VALUE,...". A name is the key of a tag (run_label_valid()), a value what a
 * tag can have, without commas. A grid or a value that is there twice, no grid, more than FLOW_POINTS_MAX points:
 * -ACT_USAGE. Release out in every case. */
int flow_grids_read(const struct act_strv *texts, struct flow_grids *out, struct act_error *err) ACT_NODISCARD;
void flow_grids_release(struct flow_grids *grids);
/* Checks that each placeholder of the command has a grid, and each grid a placeholder; else -ACT_USAGE. */
int flow_grids_check(const struct flow_grids *grids, const struct act_strv *command,
                     struct act_error *err) ACT_NODISCARD;
/* Returns the value of a grid in a point. Points count from 0, and the last grid changes first. */
const char *flow_grids_value(const struct flow_grids *grids, int64_t point, size_t grid);
/* Appends to out the command of a point; the command must have been checked. */
void flow_grids_words(const struct flow_grids *grids, int64_t point, const struct act_strv *command,
                      struct act_strv *out);
/* Returns the command of a point as one line, quoted where necessary, as a new string. */
char *flow_grids_line(const struct flow_grids *grids, int64_t point, const struct act_strv *command);

#endif
