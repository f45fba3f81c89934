/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_cache.h - a cache of builds, keyed by the hash of all their inputs.
 *
 * An entry is a folder in home_cache("sealed"), created by one rename, so readers never see half of
 * one and writers may race. Its files are never changed and not trusted: each is sealed
 * (base/seal.h), and an entry that does not match is dropped and built again. Only the trusted side
 * reads and writes here. Old entries are dropped once there are too many.
 */
#ifndef TOOLCHAIN_BUILD_CACHE_H
#define TOOLCHAIN_BUILD_CACHE_H

#include "base/error.h"
#include "base/mem.h"

enum { BUILD_CACHE_ENTRIES = 4096 };

/* Copies the entry's files into `dir`; false if there is no entry. */
bool build_cache_fetch(const char *key, const char *dir, const char *const *files, size_t count,
                       struct arena *a);
/* Stores copies of `files` in `dir` (missing ones are skipped). Failure to cache is not an
 * error. */
void build_cache_keep(const char *key, const char *dir, const char *const *files, size_t count,
                      struct arena *a);
/* The same with a cache shared by machines (`share` may be NULL): an entry missing here is fetched
 * from it and kept; a new entry is also put there. */
struct shared_files;
bool build_cache_find(const struct shared_files *share, const char *key, const char *dir,
                      const char *const *files, size_t count, struct arena *a);
void build_cache_add(const struct shared_files *share, const char *key, const char *dir,
                     const char *const *files, size_t count, struct arena *a);
/* Hash of our headers that a kernel includes: part of every key. */
bool build_cache_headers(const char *kernel_include, struct arena *a, char hex[65],
                         struct error *err);
/* Identifies a copy of a library's headers, wherever it is, by names and sizes of all files in two
 * folders below `include`. A change that keeps a file's size is not noticed. */
void build_cache_library(const char *include, const char *const folders[2], char hex[65]);
/* Drops the least recently used entries beyond the limit. */
void build_cache_prune(size_t limit, struct arena *a);

#endif
