/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - make a policy, write it as JSON and read it back. */
#include "base/json.h"
#include "confine/confine.h"

#include <string.h>

void confine_allow(struct confine_policy *p, const char *path, unsigned rights)
{
    if (!path || path[0] != '/')
        return;
    for (size_t i = 0; i < p->paths; i++)
        if (strcmp(p->path[i].path, path) == 0) {
            p->path[i].rights |= rights;
            return;
        }
    if (p->paths == CONFINE_MAX_PATHS)
        BUG("a policy of more than %d paths", CONFINE_MAX_PATHS);
    p->path[p->paths++] = (struct confine_path){path, rights};
}

json_t *confine_json(const struct confine_policy *p)
{
    json_t *paths = json_array();
    json_t *j =
        json_pack("{s:s, s:o, s:b, s:b, s:b, s:I, s:I, s:I, s:i}", "name", p->name, "paths", paths,
                  "fork", p->fork, "network", p->network, "cuda", p->cuda, "data_bytes",
                  (json_int_t)p->data_bytes, "file_bytes", (json_int_t)p->file_bytes, "tmp_bytes",
                  (json_int_t)p->tmp_bytes, "tmp_rights", (int)p->tmp_rights);

    for (size_t i = 0; i < p->paths; i++)
        json_array_append_new(paths, json_pack("[s, i]", p->path[i].path, (int)p->path[i].rights));
    return j;
}

static bool parse_path(const json_t *pair, struct arena *a, struct confine_policy *out,
                       struct error *err)
{
    const char *path = json_string_value(json_array_get(pair, 0));
    json_int_t rights = json_integer_value(json_array_get(pair, 1));

    if (!path || path[0] != '/' || rights < 1 || rights > 31)
        return error_set(err, ERROR_USE, "a policy's path is [\"/absolute\", RIGHTS]");
    if (out->paths == CONFINE_MAX_PATHS)
        return error_set(err, ERROR_USE, "a policy has at most %d paths", CONFINE_MAX_PATHS);
    confine_allow(out, arena_strdup(a, path), (unsigned)rights);
    return true;
}

static bool parse_bytes(const json_t *j, const char *key, uint64_t *out, struct error *err)
{
    int64_t v = json_int_or(j, key, 0);

    if (v < 0)
        return error_set(err, ERROR_USE, "%s of a policy is negative", key);
    *out = (uint64_t)v;
    return true;
}

bool confine_parse(const json_t *j, struct arena *a, struct confine_policy *out, struct error *err)
{
    const char *name;
    json_t *paths;

    memset(out, 0, sizeof *out);
    if (!json_get_string(j, "name", &name, err) || !json_get_array(j, "paths", &paths, err) ||
        !parse_bytes(j, "data_bytes", &out->data_bytes, err) ||
        !parse_bytes(j, "file_bytes", &out->file_bytes, err) ||
        !parse_bytes(j, "tmp_bytes", &out->tmp_bytes, err))
        return false;
    out->name = arena_strdup(a, name);
    out->tmp_rights = (unsigned)json_int_or(j, "tmp_rights", 0) & CONFINE_EXECUTE;
    out->fork = json_bool_or(j, "fork", false);
    out->network = json_bool_or(j, "network", false);
    out->cuda = json_bool_or(j, "cuda", false);
    for (size_t i = 0; i < json_array_size(paths); i++)
        if (!parse_path(json_array_get(paths, i), a, out, err))
            return false;
    return true;
}
