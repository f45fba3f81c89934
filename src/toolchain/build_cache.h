/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_cache.h - what was built before, by the hash of all that went into it.
 *
 * An entry is a folder in home_cache("sealed"): it appears by one rename, so
 * readers never see half of one and writers may race. Files in it are never
 * changed, and not believed: each is sealed (base/seal.h), and an entry that
 * does not match is dropped and made again. Only the trusted side reads and
 * writes here. Old entries are dropped once there are too many.
 */
#ifndef TOOLCHAIN_BUILD_CACHE_H
#define TOOLCHAIN_BUILD_CACHE_H

#include "base/error.h"
#include "base/mem.h"

enum { BUILD_CACHE_ENTRIES = 4096 };

/* Copies the entry's files into `dir`; false when there is none. */
bool build_cache_fetch(const char *key, const char *dir, const char *const *files, size_t count,
                       struct arena *a);
/* Keeps copies of `files` of `dir` (missing ones are left out). Failure to cache is not an error.
 */
void build_cache_keep(const char *key, const char *dir, const char *const *files, size_t count,
                      struct arena *a);
/* The same where machines share what they compile (`share` may be NULL): what is not here is asked
 * for there, and stays here; what is made here goes there. */
struct shared_files;
bool build_cache_find(const struct shared_files *share, const char *key, const char *dir,
                      const char *const *files, size_t count, struct arena *a);
void build_cache_add(const struct shared_files *share, const char *key, const char *dir,
                     const char *const *files, size_t count, struct arena *a);
/* Hash of what a kernel includes of ours: part of every key. */
bool build_cache_headers(const char *kernel_include, struct arena *a, char hex[65],
                         struct error *err);
/* What distinguishes the copies of a library's headers that an entry may have been built with,
 * wherever they lie: names and sizes of all files of two folders below `include`. Changes of a file
 * that leave its size as it is are not seen. */
void build_cache_library(const char *include, const char *const folders[2], char hex[65]);
/* Drops the least recently used entries beyond the limit. */
void build_cache_prune(size_t limit, struct arena *a);

#endif
