/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_agent.c - `agent install`: the MCP server's entry and a skill, for a coding agent.
 *
 * Changes files of the project, in the working directory; nothing in a home directory. Everything
 * is decided before anything is written, so that one file that cannot be merged leaves all of them
 * unchanged.
 */
#include "base/fs.h"
#include "cli/agent_files.h"
#include "cli/cmd.h"

#include <string.h>
#include <unistd.h>

enum { MAX_PLANS = 6, MAX_FILE = 8 << 20 };

enum file_kind { FILE_JSON, FILE_TOML, FILE_SKILL };
static const struct agent {
    const char *flag;
    struct {
        enum file_kind kind;
        const char *path;
    } files[2];
} agents[] = {
    {"claude", {{FILE_JSON, ".mcp.json"}, {FILE_SKILL, ".claude/skills/cutegen/SKILL.md"}}},
    {"codex", {{FILE_TOML, ".codex/config.toml"}, {FILE_SKILL, ".agents/skills/cutegen/SKILL.md"}}},
    {"cursor", {{FILE_JSON, ".cursor/mcp.json"}, {FILE_SKILL, ".cursor/skills/cutegen/SKILL.md"}}},
};

struct agent_plan {
    const char *path, *what; /* "write" "change" "remove" "keep" */
    struct text now, then;
    bool there;
};

static bool make_plan(const struct cli *cli, enum file_kind kind, const char *path,
                      const char *program, bool remove, struct agent_plan *out, struct error *err)
{
    bool ok;

    *out = (struct agent_plan){.path = path, .now = text_of(""), .there = file_exists(path)};
    if (out->there && !file_read(path, MAX_FILE, cli->a, &out->now, err))
        return false;
    switch (kind) {
    case FILE_JSON:
        ok = agent_json_entry(out->now, program, remove, cli->a, &out->then, err);
        break;
    case FILE_TOML:
        ok = agent_toml_entry(out->now, program, remove, cli->a, &out->then, err);
        break;
    default:
        ok = agent_skill(out->now, remove, cli->a, &out->then, err);
        break;
    }
    if (!ok)
        return error_add(err, "%s", path);
    if (text_equal(out->now, out->then) || (!out->there && !out->then.len))
        out->what = "keep";
    else
        out->what = !out->there ? "write" : out->then.len ? "change" : "remove";
    return true;
}

static bool carry_out(const struct cli *cli, const struct agent_plan *p, struct error *err)
{
    const char *slash = strrchr(p->path, '/');

    if (!strcmp(p->what, "keep"))
        return true;
    if (!strcmp(p->what, "remove"))
        return unlink(p->path) == 0 || error_set(err, ERROR_MACHINE, "cannot remove %s", p->path);
    if (slash && !dir_make(arena_strndup(cli->a, p->path, (size_t)(slash - p->path)), err))
        return false;
    return file_write(p->path, p->then, err);
}

static void show_plan(const struct cli *cli, const struct agent_plan *p, bool text, json_t *list)
{
    static const char *const words[][2] = {
        {"write", "new"}, {"change", "changed"}, {"remove", "removed"}, {"keep", "as it was"}};
    const char *word = p->what;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(words[i][0], p->what))
            word = words[i][1];
    if (list) {
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "path", p->path, "action", p->what,
                                              "text", json_from_text(p->then)));
        return;
    }
    printf("%s%s%s  %s\n", paint_on(cli, PAINT_BOLD), p->path, paint_off(cli), word);
    if (text && p->then.len) {
        fwrite(p->then.data, 1, p->then.len, stdout);
        putchar('\n');
    }
}

bool cmd_agent_install(struct cli *cli, int *code, struct error *err)
{
    bool print = flag_get(cli, "print") != NULL, remove = flag_get(cli, "remove") != NULL;
    struct agent_plan plans[MAX_PLANS];
    char *program = NULL;
    bool all = true, ok = home_program("cutegen", cli->a, &program, err);
    json_t *list = cli->json ? json_array() : NULL;
    size_t count = 0;

    (void)code;
    for (size_t i = 0; i < ARRAY_LEN(agents); i++)
        all = all && !flag_get(cli, agents[i].flag);
    if (ok && all && !print) {
        error_set(err, ERROR_USE, "which agent? --claude, --codex, --cursor");
        ok = error_hint(err, "--print alone shows what would be written for all three");
    }
    for (size_t i = 0; ok && i < ARRAY_LEN(agents); i++)
        for (int f = 0; ok && f < 2 && (all || flag_get(cli, agents[i].flag)); f++)
            ok = make_plan(cli, agents[i].files[f].kind, agents[i].files[f].path, program, remove,
                           &plans[count++], err);
    for (size_t i = 0; ok && i < count; i++) {
        show_plan(cli, &plans[i], print || strcmp(plans[i].what, "keep") != 0, list);
        ok = print || carry_out(cli, &plans[i], err);
    }
    if (ok && list)
        print_json(json_pack("{s:O}", "files", list));
    json_decref(list);
    return ok;
}
