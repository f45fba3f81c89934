/* SPDX-License-Identifier: Apache-2.0 */
/* agent_files_test.c - `agent install` keeps what is not its own, and leaves nothing behind. */
#include "base/text.h"
#include "cli/agent_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef bool entry_fn(struct text now, const char *program, bool remove, struct arena *a,
                      struct text *out, struct error *err);

static const struct {
    const char *name;
    entry_fn *entry;
    const char *before, *has, *kept; /* has: after; kept: before and after and after the removal */
    bool refused;
} cases[] = {
    {"a new JSON file", agent_json_entry, "", "\"command\": \"/opt/cutegen\"", "", false},
    {"a JSON file of others", agent_json_entry,
     "{\"theme\": \"dark\", \"mcpServers\": {\"other\": {\"command\": \"x\"}}}",
     "\"command\": \"/opt/cutegen\"", "\"other\": {", false},
    {"an older entry of ours", agent_json_entry,
     "{\"mcpServers\": {\"cutegen\": {\"command\": \"/old\"}}, \"a\": 1}",
     "\"command\": \"/opt/cutegen\"", "\"a\": 1", false},
    {"JSON with comments is not rewritten", agent_json_entry, "// mine\n{}", NULL, NULL, true},
    {"a list is not rewritten", agent_json_entry, "[1]", NULL, NULL, true},
    {"a new TOML file", agent_toml_entry, "", "command = \"/opt/cutegen\"", "", false},
    {"a TOML file of others, comments too", agent_toml_entry,
     "# mine\nmodel = \"m\"\n[mcp_servers.other]\ncommand = \"x\"\n", "[mcp_servers.cutegen]",
     "# mine\nmodel = \"m\"\n[mcp_servers.other]\ncommand = \"x\"\n", false},
    {"a table of that name that is the user's", agent_toml_entry,
     "[mcp_servers.cutegen]\ncommand = \"mine\"\n", NULL, NULL, true},
};

static void check_case(size_t i)
{
    struct arena *a = arena_new();
    struct text once, twice, gone;
    struct error err = {0};
    bool ok = cases[i].entry(text_of(cases[i].before), "/opt/cutegen", false, a, &once, &err);

    print_message("%s\n", cases[i].name);
    assert_int_equal(ok, !cases[i].refused);
    if (ok) {
        assert_non_null(strstr(once.data, cases[i].has));
        assert_non_null(strstr(once.data, cases[i].kept));
        assert_true(cases[i].entry(once, "/opt/cutegen", false, a, &twice, &err));
        assert_true(text_equal(once, twice));
        assert_true(cases[i].entry(once, "/opt/cutegen", true, a, &gone, &err));
        assert_null(gone.len ? strstr(gone.data, "cutegen") : NULL);
        assert_non_null(strstr(gone.len ? gone.data : "", cases[i].kept));
    } else {
        assert_int_equal(err.kind, ERROR_USE);
    }
    arena_free(a);
}

static void entries_keep_what_is_not_theirs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_case(i);
}

static void a_skill_of_the_user_is_kept(void **state)
{
    struct arena *a = arena_new();
    struct text ours, gone;
    struct error err = {0};

    (void)state;
    assert_true(agent_skill(text_of(""), false, a, &ours, &err));
    assert_true(text_starts(ours, "---\nname: cutegen\n"));
    assert_true(agent_skill(ours, true, a, &gone, &err));
    assert_int_equal(gone.len, 0);
    assert_false(agent_skill(text_of("my own words\n"), false, a, &ours, &err));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_keep_what_is_not_theirs),
        cmocka_unit_test(a_skill_of_the_user_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
