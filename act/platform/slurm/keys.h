/* keys.h - the part 'slurm' of a cluster file, and what the platform's name there means. */
#ifndef ACT_PLATFORM_SLURM_KEYS_H
#define ACT_PLATFORM_SLURM_KEYS_H

#include "base/text.h"
#include "config/kind.h"

/* How runs are handed to Slurm; members may be NULL, what they mean is in keys.c. */
struct slurm_keys {
    char *login, *root;
    char *partition, *account, *qos, *time, *constraint, *gres, *reservation, *exclude, *nodelist;
    struct act_strv sbatch_options;
    char *launcher, *mpi; /* "mpirun" or "srun"; "pmix", "pmi2", "none", NULL: as the site has it */
    char *container;      /* "apptainer", "pyxis", "none" */
    char *scratch;        /* a folder on the disk of each node */
    int64_t warn_seconds; /* before the time limit */
    bool here;            /* runs are steps of the job in which they are submitted */
};

extern const struct config_part slurm_keys_part;
static inline struct slurm_keys *slurm_keys(const struct config *config)
{
    return config_part(config, &slurm_keys_part);
}

extern const struct config_kind slurm_kind;

/* Returns the time limit of runs; 0: none is given, or only the site knows it. */
int64_t slurm_time_limit_s(const struct config *config);

#endif
