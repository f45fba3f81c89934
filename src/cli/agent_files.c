/* SPDX-License-Identifier: Apache-2.0 */
/* agent_files.c - the texts of agent_files.h. */
#include "cli/agent_files.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 8 << 20 };

#define TOML_BEGIN "# >>> cutegen agent install\n"
#define TOML_END   "# <<< cutegen agent install\n"
#define SKILL_MARK "<!-- written by `cutegen agent install`; it is replaced there -->"

static const char skill[] =
    "---\n"
    "name: cutegen\n"
    "description: Write, judge, repair and speed up CUDA kernels (CuTe or CUDA C++) for a PyTorch "
    "module. Use when a kernel for a PyTorch operator is asked for, or one is wrong or slow.\n"
    "---\n" SKILL_MARK "\n\n"
    "# Kernels with cutegen\n\n"
    "A task is a Python file with `class Model(nn.Module)`, `get_inputs()` and "
    "`get_init_inputs()`. A kernel is one\n"
    "`.cu` file to the ABI of the resource `cutegen://guide/abi`. The judge, not you, decides "
    "whether it is right.\n\n"
    "1. `describe_task`: operators, shapes, the time that no kernel can beat.\n"
    "2. `start_kernel` gives a correct first kernel where the operators are known. Else write one: "
    "read\n"
    "   `cutegen://guide/abi`, `cutegen://guide/cute` and the guide of the class.\n"
    "3. `evaluate_kernel` after every edit. Not pass: read `cause`, `where` and `fix`, change as "
    "few lines as it takes,\n"
    "   judge again. Read the evidence resource only when these do not suffice.\n"
    "4. A compile error in CuTe: `search_cute` with the message.\n"
    "5. It passes: `profile_kernel` says what bounds it. One change at a time; `compare_kernels` "
    "says whether it helped.\n"
    "6. Stop near the floor, or when the profile names nothing more. `export_kernel` makes files "
    "to use.\n\n"
    "Times with `modelled: true` come from a model of a GPU and are never to be reported as "
    "measured.\n"
    "Do not weaken the task, the tolerance or the checks to make a kernel pass.\n"
    "Kernels in Triton or the CuTe DSL: one `.py` file with `plan(p)` "
    "(`cutegen://guide/triton-abi`, `cutedsl-abi`), and `target` in every call.\n"
    "Without the tools: `cutegen eval TASK.py KERNEL.cu`, `cutegen help`.\n";

/* ---- JSON ------------------------------------------------------------------- */

bool agent_json_entry(struct text now, const char *program, bool remove, struct arena *a,
                      struct text *out, struct error *err)
{
    struct error why = {0};
    json_t *root = NULL, *servers;
    char *dump;

    if (!text_trim(now).len)
        root = json_object();
    else if (!json_parse(now, "it", &root, &why) || !json_is_object(root)) {
        json_decref(root);
        error_set(err, ERROR_USE,
                  "the file is not a JSON object, so its content cannot be kept: %.300s", why.text);
        return error_hint(err, "add what --print shows by hand");
    }
    json_own(a, root);
    servers = json_object_get(root, "mcpServers");
    if (servers && !json_is_object(servers))
        return error_set(err, ERROR_USE, "its mcpServers is not an object");
    if (remove) {
        json_object_del(servers, "cutegen");
        if (servers && !json_object_size(servers))
            json_object_del(root, "mcpServers");
    } else {
        if (!servers)
            json_object_set_new(root, "mcpServers", servers = json_object());
        json_object_set_new(servers, "cutegen",
                            json_pack("{s:s, s:[s]}", "command", program, "args", "mcp"));
    }
    if (remove && !json_object_size(root)) {
        *out = text_of("");
        return true;
    }
    dump = json_dumps(root, JSON_INDENT(2));
    *out = text_of(arena_printf(a, "%s\n", dump));
    free(dump);
    return true;
}

/* ---- TOML ------------------------------------------------------------------- */

static void put_toml_string(struct buf *b, const char *s)
{
    buf_putc(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_putc(b, '\\');
        buf_putc(b, *s);
    }
    buf_putc(b, '"');
}

bool agent_toml_entry(struct text now, const char *program, bool remove, struct arena *a,
                      struct text *out, struct error *err)
{
    const char *begin = now.len ? memmem(now.data, now.len, TOML_BEGIN, strlen(TOML_BEGIN)) : NULL;
    const char *end = now.len ? memmem(now.data, now.len, TOML_END, strlen(TOML_END)) : NULL;
    static const char table[] = "[mcp_servers.cutegen]";
    struct buf b = buf_init(MAX_FILE);

    if (begin && end && begin < end) {
        const char *rest = end + strlen(TOML_END);

        buf_add(&b, now.data, (size_t)(begin - now.data));
        buf_add(&b, rest, (size_t)(now.data + now.len - rest));
    } else {
        buf_add(&b, now.data, now.len);
    }
    if (b.len && memmem(b.data, b.len, table, strlen(table))) {
        buf_release(&b);
        error_set(err, ERROR_USE, "the file has a table %s that is not ours", table);
        return error_hint(err, "it was not changed; remove it to have this one written");
    }
    if (!remove) {
        if (b.len && b.data[b.len - 1] != '\n')
            buf_putc(&b, '\n');
        buf_puts(&b, TOML_BEGIN);
        buf_printf(&b, "%s\ncommand = ", table);
        put_toml_string(&b, program);
        buf_puts(&b, "\nargs = [\"mcp\"]\n" TOML_END);
    }
    *out = buf_copy(&b, a);
    buf_release(&b);
    return true;
}

/* ---- the skill --------------------------------------------------------------- */

bool agent_skill(struct text now, bool remove, struct arena *a, struct text *out, struct error *err)
{
    (void)a;
    if (now.len && !memmem(now.data, now.len, SKILL_MARK, strlen(SKILL_MARK))) {
        error_set(err, ERROR_USE, "the file is not ours");
        return error_hint(err, "it was not changed; rename it to have the skill written");
    }
    *out = text_of(remove ? "" : skill);
    return true;
}
