/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - reading JSON that came from outside, without trusting it.
 *
 * jansson does the parsing. These helpers fetch typed members and say, as an
 * error, which member of what is missing or of the wrong type. Strings are
 * borrowed from the json_t unless an arena is given.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/error.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

/* Parses one value with a size limit; the caller json_decref()s it. */
bool json_parse(struct text in, const char *what, json_t **out, struct error *err);

bool json_get_string(const json_t *obj, const char *key, const char **out, struct error *err);
bool json_get_int(const json_t *obj, const char *key, int64_t *out, struct error *err);
bool json_get_double(const json_t *obj, const char *key, double *out, struct error *err);
bool json_get_bool(const json_t *obj, const char *key, bool *out, struct error *err);
bool json_get_array(const json_t *obj, const char *key, json_t **out, struct error *err);
bool json_get_object(const json_t *obj, const char *key, json_t **out, struct error *err);

/* Return a default when the member is missing or of another type. */
const char *json_string_or(const json_t *obj, const char *key, const char *fallback);
int64_t json_int_or(const json_t *obj, const char *key, int64_t fallback);
double json_double_or(const json_t *obj, const char *key, double fallback);
bool json_bool_or(const json_t *obj, const char *key, bool fallback);

/* The arena releases j when it is freed; NULL is fine. Returns j. */
json_t *json_own(struct arena *a, json_t *j);

/* One line, keys in insertion order, in the arena. A json_t cannot hold non-finite numbers; write
 * them as strings ("nan", "inf"). */
char *json_line(const json_t *v, struct arena *a);
/* jansson refuses strings that are not UTF-8; these replace bad bytes by U+FFFD. No data, or NULL,
 * gives null. Use them for text from outside (paths, compilers, models). */
json_t *json_from_text(struct text t);
json_t *json_from_string(const char *s);
/* Can JSON hold this path unchanged? A name that is not UTF-8 is an error. */
bool json_can_name(const char *path, struct error *err);
/* A failure as one of our processes reports it: {"ok": false, "kind", "text", "hint"}. */
json_t *json_error(const struct error *err);
/* NaN and infinities become strings, so that no value is lost. */
json_t *json_number(double v);

#endif
