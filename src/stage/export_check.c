/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_check.c - is the Python of an exported folder our own, and is nothing else there?
 *
 * Whoever imports an export runs its Python, unconfined. A record that agrees with the files says
 * nothing about them: who changed one could change the other. So they are compared with what this
 * cutegen writes. reference.py is the task, and its author's.
 *
 * Invariants
 * 1. A file that the record does not name is refused: Python takes loader.cpython-*.so or a .pyc
 *    before loader.py.
 * 2. No file is a link.
 */
#include "base/fs.h"
#include "base/json.h"
#include "stage/stage.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum { MAX_PYTHON_BYTES = 4 << 20, MAX_NATIVE_BYTES = 16 << 20 };

static bool is_identifier(const char *name)
{
    if (!*name || isdigit((unsigned char)*name))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

static bool starts(struct text t, size_t at, struct text with)
{
    return t.len - at >= with.len && !memcmp(t.data + at, with.data, with.len);
}

/* The text up to the next slot, or to the end. */
static struct text literal(struct text template, size_t at)
{
    const char *end = memchr(template.data + at, '@', template.len - at);

    return (struct text){template.data + at,
                         end ? (size_t)(end - template.data) - at : template.len - at};
}

/* Is `made` the template with something in its slots (@WORD@, all in a docstring) that cannot end a
 * string? */
static bool fits(struct text made, struct text template, const char *name)
{
    size_t m = 0;

    for (size_t t = 0; t < template.len;) {
        struct text same = literal(template, t);
        const char *end;

        if (!starts(made, m, same))
            return false;
        m += same.len;
        t += same.len;
        if (t == template.len)
            break;
        end = memchr(template.data + t + 1, '@', template.len - t - 1);
        if (!end)
            return false;
        if (!strncmp(template.data + t, "@NAME@", 6)) {
            if (!starts(made, m, text_of(name)))
                return false;
            m += strlen(name);
            t += 6;
            continue;
        }
        t = (size_t)(end - template.data) + 1;
        same = literal(template, t);
        while (m < made.len && !starts(made, m, same) && !strchr("\"\\", made.data[m]))
            m++;
    }
    return m == made.len;
}

static bool ours(const struct exported *e, const char *name, const char *own, bool *is,
                 struct arena *a, struct error *err)
{
    struct error ignored = {0};
    struct text made, wanted;
    char *path;

    if (!home_data(arena_printf(a, "oracle/exported/%s", own), a, &path, err) ||
        !file_read(path, MAX_PYTHON_BYTES, a, &wanted, err))
        return false;
    *is =
        file_read(path_join(a, e->dir, name), MAX_PYTHON_BYTES, a, &made, &ignored) &&
        (strstr(own, ".in") ? fits(made, wanted, e->name)
                            : made.len == wanted.len && !memcmp(made.data, wanted.data, made.len));
    return true;
}

/* loader-MACHINE.so; *machine has MACHINE. */
static bool is_native(const char *name, struct arena *a, const char **machine)
{
    static const char begin[] = "loader-", end[] = ".so";
    size_t len = strlen(name), around = strlen(begin) + strlen(end);

    if (len <= around || strncmp(name, begin, strlen(begin)) != 0 ||
        strcmp(name + len - strlen(end), end) != 0)
        return false;
    *machine = arena_strndup(a, name + strlen(begin), len - around);
    return is_identifier(*machine);
}

/* Native code that an import loads: it must be ours, byte for byte. */
static bool same_native(const struct exported *e, const char *name, struct arena *a)
{
    struct error ignored = {0};
    struct text made, wanted;
    char *path;

    return home_program("cutegen-loader.so", a, &path, &ignored) &&
           file_read(path, MAX_NATIVE_BYTES, a, &wanted, &ignored) &&
           file_read(path_join(a, e->dir, name), MAX_NATIVE_BYTES, a, &made, &ignored) &&
           made.len == wanted.len && !memcmp(made.data, wanted.data, made.len);
}

enum export_native stage_export_native(const struct exported *e, struct arena *a, const char **name)
{
    json_t *files = json_object_get(e->record, "files"), *hash;
    enum export_native is = EXPORT_NATIVE_NONE;
    const char *key, *machine;
    struct utsname host;

    json_object_foreach(files, key, hash)
    {
        if (!is_native(key, a, &machine) || is == EXPORT_NATIVE_DIFFERS)
            continue;
        *name = key;
        if (uname(&host) != 0 || strcmp(machine, host.machine) != 0)
            is = EXPORT_NATIVE_ELSEWHERE;
        else if (!same_native(e, key, a))
            is = EXPORT_NATIVE_DIFFERS;
        else if (is == EXPORT_NATIVE_NONE)
            is = EXPORT_NATIVE_SAME;
    }
    return is;
}

/* What Python would run, of a record that may be forged: only what an export has. */
static bool may_be_there(const struct exported *e, const char *name, struct arena *a)
{
    static const char *const ours[] = {"loader.py", "native.py",   "launcher.py", "gradients.py",
                                       "facts.py",  "__init__.py", "reference.py"};
    const char *machine;

    if (!strstr(name, ".py") && !strstr(name, ".so") && !strstr(name, ".pth"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!strcmp(name, ours[i]))
            return true;
    return !strcmp(name, arena_printf(a, "%s_new.py", e->name)) || is_native(name, a, &machine);
}

/* NULL: all in it is in the record, and no link. */
static const char *stranger(const struct exported *e, struct arena *a)
{
    const json_t *files = json_object_get(e->record, "files");
    bool kernel = !strcmp(json_string_or(e->table, "gradients", ""), "kernel");
    const char *found = NULL;
    DIR *dir = opendir(e->dir);
    struct dirent *entry;

    while (dir && !found && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        struct stat st = {0};

        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (lstat(path_join(a, e->dir, name), &st) == 0 &&
            (S_ISDIR(st.st_mode) ? kernel && !strcmp(name, EXPORT_BACKWARD)
                                 : S_ISREG(st.st_mode) && (!strcmp(name, "record.json") ||
                                                           json_object_get(files, name))) &&
            may_be_there(e, name, a))
            continue;
        found = arena_strdup(a, name);
    }
    if (dir)
        closedir(dir);
    return dir ? found : ".";
}

bool stage_export_python(const struct exported *e, struct arena *a, const char **why,
                         struct error *err)
{
    const char *const files[][2] = {{"loader.py", "loader.py"},
                                    {"native.py", "native.py"},
                                    {"launcher.py", "launcher.py"},
                                    {"gradients.py", "gradients.py"},
                                    {"facts.py", "facts.py"},
                                    {"__init__.py", "__init__.py.in"},
                                    {arena_printf(a, "%s_new.py", e->name), "model_new.py.in"}};
    const char *other = stranger(e, a);

    *why = NULL;
    if (!is_identifier(e->name))
        *why = "its name is not one of Python's";
    else if (other)
        *why = arena_printf(a, "%s is not of the export: remove it, Python may run it", other);
    for (size_t i = 0; i < ARRAY_LEN(files) && !*why; i++) {
        bool is;

        if (!ours(e, files[i][0], files[i][1], &is, a, err))
            return false;
        if (!is)
            *why = arena_printf(a,
                                "%s is not what this cutegen writes (the export says %s): export "
                                "again before you import it",
                                files[i][0], json_string_or(e->record, "cutegen", "nothing"));
    }
    return true;
}
