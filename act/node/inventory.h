/* inventory.h - what a node is, for whoever has to explain later why a run failed on it: system, disks, network,
 * InfiniBand, GPUs, and the Python that the command finds, with its packages. All of it is read from files, so that it
 * takes a few milliseconds and starts nothing. What a run ran with, software.h writes down.
 *
 * Sources: os-release(5); kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-class-net;
 * the names of packaging.python.org/specifications/recording-installed-packages; docs.python.org/3/library/venv.html
 * and site.html (pyvenv.cfg, user site).
 */
#ifndef ACT_NODE_INVENTORY_H
#define ACT_NODE_INVENTORY_H

#include "base/text.h"
#include "node/node.h"

struct inventory {
    const char *root;          /* before the paths of files of the system: "" */
    const char *const *places; /* paths whose file systems are told; ends with NULL */
    const char *python;        /* its path; NULL: there is none, or it is that of an image */
    const char *home;          /* for packages that the user has installed; may be NULL */
    const char *python_path;   /* PYTHONPATH; may be NULL */
};

/* Appends lines: "disk: / 80.1 GiB of 252.0 GiB free, ...". What cannot be read is left out. */
void inventory_take(const struct inventory *what, struct act_strv *out);

/* Does the same for this node, with the disks and the Python of its run. */
void inventory_of(const struct node *node, struct act_strv *out);

/* Returns the Python that the run's command names, or that the first line of the script that it is names; else the one
 * that it would find. New string; NULL: there is none, or it is that of an image. */
char *inventory_python(const struct node *node);

/* Tells whether a program is a script, like those of pyenv, which choose a Python only when they run. */
bool inventory_is_script(const char *path);

/* Returns the first line of a file below root that begins with key, without it and without quotes, a new string; empty:
 * there is none. */
char *inventory_value(const char *root, const char *path, const char *key);

/* Makes numpy==1.24.2 of "numpy-1.24.2.dist-info" and PyYAML==6.0 of "PyYAML-6.0-py3.11.egg-info", a new string; NULL:
 * it is not the folder of a package. */
char *inventory_package(const char *folder);

/* Appends the installed packages of a Python, as "numpy==1.24.2", sorted; of those with the same name the one that it
 * finds first. Of a virtual environment those of the Python that it was made from count where its pyvenv.cfg says so.
 */
void inventory_packages(const char *python, const char *home, const char *python_path, struct act_strv *out);

#endif
