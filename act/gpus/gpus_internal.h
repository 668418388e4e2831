/* gpus_internal.h - what the files of this module share. facts.c reads what is there, masks.c judges what is given,
 * ask.c asks nvidia-smi and the drivers' files who uses it, users.c takes the answers apart, choose.c chooses. */
#ifndef ACT_GPUS_GPUS_INTERNAL_H
#define ACT_GPUS_GPUS_INTERNAL_H

#include "gpus/gpus.h"

/* Adds a process to those of a GPU. */
void users_add(struct gpu *gpu, pid_t pid, const char *program, int64_t memory_bytes);

#endif
