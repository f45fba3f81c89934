/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_check.c - check that a node is valid; see graph_node_fault() in graph.h.
 *
 * A description comes from a process that ran a task's code, so it is untrusted. Everything that
 * the rest of the engineer relies on is checked here once, when a node is read.
 */
#include "expert/graph/graph.h"

#include "base/json.h"

#include <string.h>

enum { MOST_NESTED = 8 };
static const int64_t most_elements = (int64_t)1 << 46;

/* Names go into kernels and messages. */
static bool is_name(const json_t *v, const char *more)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *s = json_string_value(v);

    while (s && *s && (strchr(letters, *s) || strchr(more, *s)))
        s++;
    return s && !*s && json_string_length(v) > 0;
}

/* Sizes whose product is a size, too; strides within bounds. */
static bool are_sizes(const json_t *list)
{
    int64_t all = 1;
    size_t i;
    json_t *v;

    if (!json_is_array(list) || json_array_size(list) > MAX_DIMS)
        return false;
    json_array_foreach((json_t *)(uintptr_t)list, i, v)
    {
        int64_t n = json_integer_value(v);

        if (!json_is_integer(v) || n < 0 || n > most_elements || (n > 0 && all > most_elements / n))
            return false;
        all *= n > 0 ? n : 1;
    }
    return true;
}

static bool are_strides(const json_t *list)
{
    size_t i;
    json_t *v;

    json_array_foreach((json_t *)(uintptr_t)list, i,
                       v) if (!json_is_integer(v) || json_integer_value(v) < 0 ||
                              json_integer_value(v) > most_elements) return false;
    return !list || json_is_array(list);
}

bool graph_tensor_reads(const json_t *obj)
{
    const json_t *dtype = json_object_get(obj, "dtype"), *name = json_object_get(obj, "name");

    return are_sizes(json_object_get(obj, "shape")) &&
           are_strides(json_object_get(obj, "strides")) && (!dtype || is_name(dtype, "")) &&
           (!name || json_is_string(name));
}

/* Does an argument read only what comes before it? */
static bool reads_earlier(const struct graph *g, const json_t *arg, int depth)
{
    size_t i;
    const char *key;
    json_t *v;

    if (depth > MOST_NESTED)
        return false;
    if (json_object_get(arg, "node") &&
        (!json_is_integer(json_object_get(arg, "node")) || !graph_node(g, graph_id(arg))))
        return false;
    json_array_foreach((json_t *)(uintptr_t)arg, i,
                       v) if (!reads_earlier(g, v, depth + 1)) return false;
    json_object_foreach((json_t *)(uintptr_t)arg, key,
                        v) if (!reads_earlier(g, v, depth + 1)) return false;
    return true;
}

static const char *parts_fault(const json_t *parts)
{
    size_t i;
    json_t *part;

    if (parts && (!json_is_array(parts) || json_array_size(parts) > GRAPH_PARTS))
        return "its results are not a list";
    json_array_foreach((json_t *)(uintptr_t)parts, i,
                       part) if (json_object_get(part, "shape") &&
                                 !graph_tensor_reads(part)) return "a result of it is not a tensor";
    return NULL;
}

const char *graph_node_fault(const struct graph *g, const json_t *obj)
{
    int64_t id = json_int_or(obj, "id", -1), index = json_int_or(obj, "index", -1);
    const char *op = json_string_value(json_object_get(obj, "op"));
    const json_t *shape = json_object_get(obj, "shape");

    if (!is_name(json_object_get(obj, "op"), ".:"))
        return "it has no operator";
    if (strcmp(op, "output") == 0)
        return reads_earlier(g, json_object_get(obj, "args"), 0) ? NULL
                                                                 : "it reads what is not there";
    if (id < 0 || id >= GRAPH_IDS || graph_node(g, (int)id))
        return "its number is none, or another's";
    if (shape && !graph_tensor_reads(obj))
        return "its shape does not read";
    if (strcmp(op, "input") == 0 &&
        (index < 0 || index >= g->in_count || (int)json_array_size(shape) != g->in[index].dims))
        return "it is not an input of the task";
    if ((json_object_get(obj, "args") && !json_is_array(json_object_get(obj, "args"))) ||
        (json_object_get(obj, "kwargs") && !json_is_object(json_object_get(obj, "kwargs"))) ||
        !reads_earlier(g, json_object_get(obj, "args"), 0) ||
        !reads_earlier(g, json_object_get(obj, "kwargs"), 0))
        return "it reads what does not come before it";
    return parts_fault(json_object_get(obj, "parts"));
}
