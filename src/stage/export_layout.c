/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_layout.c - where the files of an export go.
 *
 *     folder   DIR/...                                        import it from there
 *     wheel    DIR/NAME-VERSION-py3-none-any.whl              pip install it
 *     hf       DIR/build/torch-universal/NAME/...             kernels.get_local_kernel(DIR)
 *              DIR/build/torch-universal/metadata.json        what that package reads first
 *
 * One wheel serves all processors: on one without its loader, kernels are launched from Python.
 */
#include "base/base64.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/zip.h"
#include "stage/exported.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WHEEL_BYTES = 1 << 30, MAX_LIST_BYTES = 1 << 20 };

static bool write_folder(const struct export_package *p, const char *dir, struct arena *a,
                         struct error *err)
{
    bool backward = false;

    for (size_t i = 0; i < p->count; i++)
        backward = backward || strchr(p->files[i].name, '/');
    if (!dir_make(backward ? path_join(a, dir, EXPORT_BACKWARD) : dir, err))
        return false;
    for (size_t i = 0; i < p->count; i++)
        if (!file_write(path_join(a, dir, p->files[i].name), p->files[i].data, err))
            return false;
    return true;
}

/* RECORD's digests are base64 of the bytes, "url-safe", without padding. */
static const char *wheel_digest(struct text data, struct arena *a)
{
    char hex[65], bytes[32], *letters = arena_alloc(a, BASE64_ROOM(sizeof bytes));

    hash_text(data, hex);
    for (size_t i = 0; i < sizeof bytes; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

        bytes[i] = (char)strtoul(two, NULL, 16);
    }
    base64_encode(bytes, sizeof bytes, "-_", letters);
    letters[strcspn(letters, "=")] = '\0';
    return letters;
}

/* Of record.json, which names all other files. */
static const char *record_hash(const struct export_package *p, struct arena *a)
{
    char hex[65];

    hash_text(p->files[p->count - 1].data, hex);
    return arena_printf(a, "%.10s", hex);
}

/* Another kernel is another version: pip keeps what is installed where the version is the same. */
static const char *wheel_version(const struct export_package *p, struct arena *a)
{
    return arena_printf(a, "%s+%s", p->version, record_hash(p, a));
}

/* A project's name begins and ends with a letter or a digit; what is imported keeps its own. */
static const char *project_name(const char *name, struct arena *a)
{
    size_t len = strlen(name);

    return arena_printf(a, "%s%s%s", isalnum((unsigned char)*name) ? "" : "k", name,
                        isalnum((unsigned char)name[len - 1]) ? "" : "0");
}

static void wheel_add(struct zip *z, struct buf *list, const char *name, struct text data,
                      struct arena *a)
{
    zip_add(z, name, data);
    buf_printf(list, "%s,sha256=%s,%zu\n", name, wheel_digest(data, a), data.len);
}

static bool write_wheel(const struct export_package *p, const char *dir, struct arena *a,
                        const char **path, struct error *err)
{
    const char *version = wheel_version(p, a), *name = project_name(p->name, a);
    const char *info = arena_printf(a, "%s-%s.dist-info", name, version);
    struct zip z = zip_init(MAX_WHEEL_BYTES);
    struct buf list = buf_init(MAX_LIST_BYTES);
    struct text archive;
    bool ok;

    for (size_t i = 0; i < p->count; i++)
        wheel_add(&z, &list, arena_printf(a, "%s/%s", p->name, p->files[i].name), p->files[i].data,
                  a);
    wheel_add(&z, &list, arena_printf(a, "%s/METADATA", info),
              text_of(arena_printf(a,
                                   "Metadata-Version: 2.1\nName: %s\nVersion: %s\n"
                                   "Summary: a kernel judged and exported by cutegen\n"
                                   "Requires-Python: >=3.8\nRequires-Dist: torch\n",
                                   name, version)),
              a);
    wheel_add(&z, &list, arena_printf(a, "%s/WHEEL", info),
              text_of("Wheel-Version: 1.0\nGenerator: cutegen\nRoot-Is-Purelib: true\n"
                      "Tag: py3-none-any\n"),
              a);
    buf_printf(&list, "%s/RECORD,,\n", info);
    zip_add(&z, arena_printf(a, "%s/RECORD", info), buf_text(&list));
    archive = zip_end(&z);
    *path = path_join(a, dir, arena_printf(a, "%s-%s-py3-none-any.whl", name, version));
    ok = archive.len ? dir_make(dir, err) && file_write(*path, archive, err)
                     : error_set(err, ERROR_USE, "the wheel would be larger than 1 GiB");
    buf_release(&list);
    zip_release(&z);
    return ok;
}

/* As the hub wants names: lower case, digits and dashes, a letter first; or with `_` for Python. */
static const char *hub_name(const char *name, char dash, struct arena *a)
{
    char *out = arena_printf(a, "%s%s", isalpha((unsigned char)*name) ? "" : "k", name);
    size_t len = strlen(out);

    for (char *p = out; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : dash;
    while (len > 1 && out[len - 1] == dash)
        out[--len] = '\0';
    return out;
}

static bool write_metadata(const struct export_package *p, const char *variant, struct arena *a,
                           struct error *err)
{
    const char *name = hub_name(p->name, '_', a);

    return dir_make(variant, err) &&
           file_write(path_join(a, variant, "metadata.json"),
                      text_of(arena_printf(a,
                                           "{\"name\": \"%s\", \"id\": \"_%s_%s\", "
                                           "\"version\": 1, \"license\": \"unknown\", "
                                           "\"python-depends\": [], "
                                           "\"backend\": {\"type\": \"cuda\"}}\n",
                                           hub_name(p->name, '-', a), name, record_hash(p, a))),
                      err);
}

bool export_place(const struct export_package *p, enum export_layout layout, const char *dir,
                  struct arena *a, struct export_files *out, struct error *err)
{
    const char *folder = dir;

    *out = (struct export_files){.dir = dir};
    if (layout == LAYOUT_WHEEL)
        return write_wheel(p, dir, a, &out->wheel_path, err);
    if (layout == LAYOUT_HF) {
        const char *variant = path_join(a, dir, "build/torch-universal");

        if (!write_metadata(p, variant, a, err))
            return false;
        folder = path_join(a, variant, hub_name(p->name, '_', a));
    }
    out->dir = folder;
    out->module_path = path_join(a, folder, arena_printf(a, "%s_new.py", p->name));
    out->source_path = path_join(a, folder, p->source);
    out->record_path = path_join(a, folder, "record.json");
    return write_folder(p, folder, a, err);
}
