/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - the part of JSON Schema that our tools use; see schema.h. */
#include "mcp/schema.h"

#include <stdio.h>
#include <string.h>

static bool has_type(const json_t *v, const char *type)
{
    static const struct {
        const char *name;
        json_type types[2];
    } known[] = {{"object", {JSON_OBJECT, JSON_OBJECT}}, {"array", {JSON_ARRAY, JSON_ARRAY}},
                 {"string", {JSON_STRING, JSON_STRING}}, {"integer", {JSON_INTEGER, JSON_INTEGER}},
                 {"number", {JSON_INTEGER, JSON_REAL}},  {"boolean", {JSON_TRUE, JSON_FALSE}},
                 {"null", {JSON_NULL, JSON_NULL}}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcmp(known[i].name, type))
            return json_typeof(v) == known[i].types[0] || json_typeof(v) == known[i].types[1];
    return false;
}

static bool check_type(const json_t *schema, const json_t *v, const char *name, struct error *err)
{
    json_t *type = json_object_get(schema, "type"), *one;
    size_t i;

    if (!type)
        return true;
    if (json_is_string(type))
        return has_type(v, json_string_value(type)) ||
               error_set(err, ERROR_USE, "%s is not of type %s", name, json_string_value(type));
    json_array_foreach(type, i, one) if (has_type(v, json_string_value(one))) return true;
    return error_set(err, ERROR_USE, "%s is of a wrong type", name);
}

static bool check_value(const json_t *schema, const json_t *v, const char *name, struct error *err)
{
    json_t *list = json_object_get(schema, "enum"), *one;
    double least = json_double_or(schema, "minimum", -1e300);
    double most = json_double_or(schema, "maximum", 1e300);
    char words[256] = "";
    size_t i, n = 0;

    json_array_foreach(list, i, one)
    {
        if (json_equal(one, v))
            return true;
        n += (size_t)snprintf(words + n, n < sizeof(words) ? sizeof(words) - n : 0, "%s%s",
                              i ? ", " : "", json_string_value(one));
        n = n < sizeof(words) ? n : sizeof(words) - 1;
    }
    if (list)
        return error_set(err, ERROR_USE, "%s is none of: %s", name, words);
    if (json_is_number(v) && (json_number_value(v) < least || json_number_value(v) > most))
        return error_set(err, ERROR_USE, "%s is not from %g to %g", name, least, most);
    if (json_is_string(v) && (int64_t)json_string_length(v) < json_int_or(schema, "minLength", 0))
        return error_set(err, ERROR_USE, "%s is empty", name);
    if (json_is_string(v) &&
        (int64_t)json_string_length(v) > json_int_or(schema, "maxLength", INT64_MAX))
        return error_set(err, ERROR_USE, "%s is longer than %lld bytes", name,
                         (long long)json_int_or(schema, "maxLength", 0));
    return true;
}

static bool check_members(const json_t *schema, const json_t *v, struct error *err)
{
    json_t *properties = json_object_get(schema, "properties");
    json_t *more = json_object_get(schema, "additionalProperties"), *member, *of;
    const char *key;
    size_t i;

    json_array_foreach(
        json_object_get(schema, "required"), i,
        member) if (!json_object_get(v,
                                     json_string_value(
                                         member))) return error_set(err, ERROR_USE, "%s is missing",
                                                                    json_string_value(member));
    json_object_foreach((json_t *)(uintptr_t)v, key, member)
    {
        of = json_object_get(properties, key);
        if (!of && json_is_false(more))
            return error_set(err, ERROR_USE, "there is no argument '%.80s'", key);
        if (!of && json_is_object(more))
            of = more;
        if (of && !schema_check(of, member, key, err))
            return false;
    }
    return true;
}

bool schema_check(const json_t *schema, const json_t *value, const char *name, struct error *err)
{
    json_t *items = json_object_get(schema, "items"), *item;
    size_t i;

    if (!check_type(schema, value, name, err) || !check_value(schema, value, name, err))
        return false;
    if (json_is_object(value))
        return check_members(schema, value, err);
    if (json_is_array(value) && items)
        json_array_foreach(value, i, item) if (!schema_check(items, item, name, err)) return false;
    return true;
}
