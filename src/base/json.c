/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - typed members of JSON from outside, with errors that name them. */
#include "base/json.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool json_parse(struct text in, const char *what, json_t **out, struct error *err)
{
    json_error_t why;
    json_t *v = json_loadb(in.data, in.len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);

    if (!v)
        return error_set(err, ERROR_MACHINE, "%s is not JSON: %s (line %d, column %d)", what,
                         why.text, why.line, why.column);
    *out = v;
    return true;
}

static bool json_missing(const json_t *v, const char *key, const char *type, struct error *err)
{
    return error_set(err, ERROR_MACHINE, "member '%s' is %s, %s wanted", key,
                     v ? "of another type" : "missing", type);
}

bool json_get_string(const json_t *obj, const char *key, const char **out, struct error *err)
{
    const json_t *v = json_object_get(obj, key);

    if (!json_is_string(v))
        return json_missing(v, key, "a string", err);
    *out = json_string_value(v);
    return true;
}

bool json_get_int(const json_t *obj, const char *key, int64_t *out, struct error *err)
{
    const json_t *v = json_object_get(obj, key);

    if (!json_is_integer(v))
        return json_missing(v, key, "an integer", err);
    *out = json_integer_value(v);
    return true;
}

/* The reverse of json_number(): numbers that JSON cannot hold are strings. */
static bool json_to_double(const json_t *v, double *out)
{
    const char *s = json_string_value(v);

    if (json_is_number(v))
        *out = json_number_value(v);
    else if (s && strcmp(s, "nan") == 0)
        *out = NAN;
    else if (s && strcmp(s, "inf") == 0)
        *out = INFINITY;
    else if (s && strcmp(s, "-inf") == 0)
        *out = -INFINITY;
    else
        return false;
    return true;
}

bool json_get_double(const json_t *obj, const char *key, double *out, struct error *err)
{
    const json_t *v = json_object_get(obj, key);

    return json_to_double(v, out) || json_missing(v, key, "a number", err);
}

bool json_get_bool(const json_t *obj, const char *key, bool *out, struct error *err)
{
    const json_t *v = json_object_get(obj, key);

    if (!json_is_boolean(v))
        return json_missing(v, key, "true or false", err);
    *out = json_is_true(v);
    return true;
}

bool json_get_array(const json_t *obj, const char *key, json_t **out, struct error *err)
{
    json_t *v = json_object_get(obj, key);

    if (!json_is_array(v))
        return json_missing(v, key, "a list", err);
    *out = v;
    return true;
}

bool json_get_object(const json_t *obj, const char *key, json_t **out, struct error *err)
{
    json_t *v = json_object_get(obj, key);

    if (!json_is_object(v))
        return json_missing(v, key, "an object", err);
    *out = v;
    return true;
}

const char *json_string_or(const json_t *obj, const char *key, const char *fallback)
{
    const char *s = json_string_value(json_object_get(obj, key));

    return s ? s : fallback;
}

int64_t json_int_or(const json_t *obj, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_integer(v) ? json_integer_value(v) : fallback;
}

double json_double_or(const json_t *obj, const char *key, double fallback)
{
    double d;

    return json_to_double(json_object_get(obj, key), &d) ? d : fallback;
}

bool json_bool_or(const json_t *obj, const char *key, bool fallback)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static void json_release(void *j)
{
    json_decref(j);
}

json_t *json_own(struct arena *a, json_t *j)
{
    if (j)
        arena_defer(a, json_release, j);
    return j;
}

char *json_line(const json_t *v, struct arena *a)
{
    char *s = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY), *copy;

    if (!s)
        BUG("a JSON value that cannot be written");
    copy = arena_strdup(a, s);
    free(s); /* jansson's own allocation */
    return copy;
}

json_t *json_from_text(struct text t)
{
    struct arena *a;
    json_t *v;

    if (!t.data)
        return json_null();
    a = arena_new();
    t = text_clean(t, a);
    v = json_stringn(t.data, t.len);
    arena_free(a);
    return v;
}

json_t *json_from_string(const char *s)
{
    return s ? json_from_text(text_of(s)) : json_null();
}

bool json_can_name(const char *path, struct error *err)
{
    json_t *v = json_string(path);

    if (!v) {
        error_set(err, ERROR_USE, "the name %s is not UTF-8", path);
        return error_hint(err, "rename the file or its folder");
    }
    json_decref(v);
    return true;
}

json_t *json_error(const struct error *err)
{
    return json_pack("{s:b, s:s, s:o, s:o}", "ok", 0, "kind",
                     err->kind == ERROR_USE ? "use" : "machine", "text",
                     json_from_string(err->text), "hint", json_from_string(err->hint));
}

json_t *json_number(double v)
{
    if (isfinite(v))
        return json_real(v);
    return json_string(isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}
