/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs.h - files, folders, and where the product's own files are.
 *
 * Reads have a limit and accept only regular files, also through links: a FIFO or a device is an
 * error, never a wait. Writes are atomic: a temporary file beside the target, fsync, rename. Known
 * secrets are scrubbed from what is written (base/vault.h).
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include "base/error.h"
#include "base/mem.h"

#include <stdint.h>

bool file_read(const char *path, size_t limit, struct arena *a, struct text *out,
               struct error *err);
bool stdin_read(size_t limit, struct arena *a, struct text *out, struct error *err);
bool file_write(const char *path, struct text data, struct error *err);
bool file_exists(const char *path);
bool dir_make(const char *path, struct error *err);   /* with parents */
bool dir_remove(const char *path, struct error *err); /* recursive; a missing folder is fine */
char *path_join(struct arena *a, const char *dir, const char *name);
const char *path_base(const char *path);                 /* last component, borrowed */
char *path_stem(struct arena *a, const char *path);      /* last component without extension */
char *path_absolute(struct arena *a, const char *path);  /* links followed */
char *path_from_here(struct arena *a, const char *path); /* links kept */
/* A new empty folder for one job (0700), on tmpfs where there is one. */
bool dir_temp(const char *prefix, struct arena *a, char **out, struct error *err);
/* First executable of that name on $PATH, or NULL. A name with '/' is only checked. */
char *path_find_program(struct arena *a, const char *name);

/* Bytes of memory of this machine, or of our control group if that has less. */
uint64_t machine_memory(void);

/*
 * The product's own files, found from where the running executable is (so a tree can be moved):
 *   build tree  BUILD/cutegen-runner          data in the source tree above it
 *   installed   PREFIX/libexec/cutegen/...    data in PREFIX/share/cutegen
 * $CUTEGEN_HOME overrides the data folder (it holds include/, oracle/, ...).
 */
bool home_program(const char *name, struct arena *a, char **out, struct error *err);
bool home_data(const char *relative, struct arena *a, char **out, struct error *err);
/* $XDG_CACHE_HOME/cutegen (0700), made if missing; $CUTEGEN_CACHE overrides. */
bool home_cache(const char *relative, struct arena *a, char **out, struct error *err);
/* $XDG_DATA_HOME/cutegen: where set-up puts the venv and the wheels; $CUTEGEN_TOOLS overrides. */
bool home_tools(const char *relative, struct arena *a, char **out, struct error *err);
/* $CUTEGEN_RUNTIME, else $XDG_RUNTIME_DIR/cutegen, else /tmp/cutegen-UID: private (0700), made if
 * missing. Sockets and locks that live as long as their processes. */
bool home_runtime(struct arena *a, char **out, struct error *err);

#endif
