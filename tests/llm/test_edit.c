/* test_edit.c - edit_apply over every format: what applies, what is rejected, and why. */
#include "llm/edit/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SR(old, new) "<<<<<<< SEARCH\n" old "=======\n" new ">>>>>>> REPLACE\n"
#define JSON(s)      "```json\n" s "\n```\n"

static const struct edit_case {
    const char *name, *source, *reply, *want; /* want NULL: unchanged */
    enum edit_status status;
    const char *says; /* in reason or note; NULL: nothing asked */
} cases[] = {
    /* JSON by number */
    {"replaces one line", "a\nb\nc\n",
     "[{\"action\":\"replace\",\"line_number\":2,\"new_code\":\"B\"}]", "a\nB\nc\n", EDIT_APPLIED,
     NULL},
    {"takes a single object", "a\nb\n", JSON("{\"action\":\"delete\",\"line_number\":1}"), "b\n",
     EDIT_APPLIED, NULL},
    {"inserts before the line", "a\nb\n",
     JSON("[{\"action\":\"insert\",\"line_number\":2,\"new_code\":[\"x\",\"y\"]}]"), "a\nx\ny\nb\n",
     EDIT_APPLIED, NULL},
    {"appends at one past the end", "a\n",
     JSON("[{\"action\":\"insert\",\"line_number\":2,\"new_code\":\"z\"}]"), "a\nz\n", EDIT_APPLIED,
     NULL},
    {"inserts after on request", "a\nb\n",
     JSON("[{\"action\":\"insert_after\",\"line_number\":1,\"new_code\":\"x\"}]"), "a\nx\nb\n",
     EDIT_APPLIED, NULL},
    {"replaces num_lines lines by a list", "a\nb\nc\nd\n",
     JSON("[{\"action\":\"replace\",\"line_number\":2,\"num_lines\":2,\"new_code\":[\"x\"]}]"),
     "a\nx\nd\n", EDIT_APPLIED, NULL},
    {"numbers refer to the source as shown, not as edited", "a\nb\nc\n",
     JSON("[{\"action\":\"delete\",\"line_number\":1},"
          "{\"action\":\"replace\",\"line_number\":3,\"new_code\":\"C\"},"
          "{\"action\":\"insert\",\"line_number\":2,\"new_code\":\"x\"}]"),
     "x\nb\nC\n", EDIT_APPLIED, NULL},
    {"a string with newlines is several lines", "a\nb\n",
     JSON("{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\\ny\\n\"}"), "x\ny\nb\n",
     EDIT_APPLIED, NULL},
    {"list items may end in newlines", "a\n",
     JSON("{\"action\":\"replace\",\"line_number\":1,\"new_code\":[\"x\\n\",\"y\\n\"]}"), "x\ny\n",
     EDIT_APPLIED, NULL},
    {"an empty string is an empty line", "a\nb\n",
     JSON("{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"\"}"), "\nb\n", EDIT_APPLIED,
     NULL},
    {"an empty list removes", "a\nb\n",
     JSON("{\"action\":\"replace\",\"line_number\":1,\"new_code\":[]}"), "b\n", EDIT_APPLIED, NULL},
    {"two inserts at one place keep their order", "a\n",
     JSON("[{\"action\":\"insert\",\"line_number\":1,\"new_code\":\"1\"},"
          "{\"action\":\"insert\",\"line_number\":1,\"new_code\":\"2\"}]"),
     "1\n2\na\n", EDIT_APPLIED, NULL},
    {"an object per line", "a\nb\n",
     JSON("{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"A\"}\n"
          "{\"action\":\"replace\",\"line_number\":2,\"new_code\":\"B\"}"),
     "A\nB\n", EDIT_APPLIED, NULL},
    {"a list inside an object", "a\n",
     JSON("{\"edits\":[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"A\"}]}"), "A\n",
     EDIT_APPLIED, NULL},
    {"real newlines in strings and trailing commas", "a\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\n\ty\",},]"), "x\n\ty\nb\n",
     EDIT_APPLIED, NULL},
    {"numbers as strings", "a\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":\"2\",\"new_code\":\"B\"}]"), "a\nB\n",
     EDIT_APPLIED, NULL},
    {"escaped quotes and backslashes arrive whole", "a\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"p(\\\"%d\\\\n\\\");\"}]"),
     "p(\"%d\\n\");\n", EDIT_APPLIED, NULL},
    {"rejects a line past the end and changes nothing", "a\n",
     "[{\"action\":\"delete\",\"line_number\":9}]", NULL, EDIT_REJECTED, "line 9 of 1"},
    {"rejects line 0", "a\n", JSON("[{\"action\":\"delete\",\"line_number\":0}]"), NULL,
     EDIT_REJECTED, "counted from 1"},
    {"rejects a negative line", "a\n", JSON("[{\"action\":\"delete\",\"line_number\":-3}]"), NULL,
     EDIT_REJECTED, "whole number"},
    {"rejects a range past the end", "a\nb\n",
     JSON("[{\"action\":\"delete\",\"line_number\":2,\"num_lines\":2}]"), NULL, EDIT_REJECTED,
     "lines 2-3 of 2"},
    {"rejects a huge range", "a\nb\n",
     JSON("[{\"action\":\"delete\",\"line_number\":2,\"num_lines\":9223372036854775807}]"), NULL,
     EDIT_REJECTED, "of 2"},
    {"rejects an insert two past the end", "a\n",
     JSON("[{\"action\":\"insert\",\"line_number\":3,\"new_code\":\"x\"}]"), NULL, EDIT_REJECTED,
     "before line 3 of 1"},
    {"rejects overlapping edits", "a\nb\nc\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"num_lines\":2,\"new_code\":\"x\"},"
          "{\"action\":\"delete\",\"line_number\":2}]"),
     NULL, EDIT_REJECTED, "touches line 2"},
    {"rejects an insert inside a replaced range", "a\nb\nc\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"num_lines\":3,\"new_code\":\"x\"},"
          "{\"action\":\"insert\",\"line_number\":2,\"new_code\":\"y\"}]"),
     NULL, EDIT_REJECTED, "touches line 2"},
    {"one bad edit rejects all", "a\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"},"
          "{\"action\":\"delete\",\"line_number\":7}]"),
     NULL, EDIT_REJECTED, "edit 2: line 7 of 2"},
    {"rejects what has no effect", "a\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"a\"}]"), NULL, EDIT_REJECTED,
     "no effect"},
    {"rejects an unknown action", "a\n", JSON("[{\"action\":\"move\",\"line_number\":1}]"), NULL,
     EDIT_REJECTED, "\"move\""},
    {"rejects a replace without code", "a\n", JSON("[{\"action\":\"replace\",\"line_number\":1}]"),
     NULL, EDIT_REJECTED, "new_code"},
    {"rejects code that is a number", "a\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":[1]}]"), NULL, EDIT_REJECTED,
     "neither a string"},
    {"rejects new code with the prompt's line numbers", "a\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"   1| b\"}]"), NULL,
     EDIT_REJECTED, "line numbers"},
    {"rejects broken JSON and says so", "a\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"say \"hi\"\"}]"), NULL,
     EDIT_REJECTED, "not JSON"},
    {"rejects JSON that ends in the middle", "a\n",
     "```json\n[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x", NULL, EDIT_REJECTED,
     "do not close"},
    {"an empty list is nothing", "a\n", JSON("[]"), NULL, EDIT_NOTHING, "empty"},
    /* JSON with anchors */
    {"an anchor at its line", "a\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":2,\"old_code\":\"b\",\"new_code\":\"B\"}]"),
     "a\nB\n", EDIT_APPLIED, NULL},
    {"an anchor found elsewhere moves the edit and says so", "a\nb\nc\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"old_code\":\"c\",\"new_code\":\"C\"}]"),
     "a\nb\nC\n", EDIT_APPLIED, "at line 3, not 1"},
    {"an anchor alone is enough", "a\nb\n", JSON("[{\"action\":\"delete\",\"old_code\":[\"a\"]}]"),
     "b\n", EDIT_APPLIED, NULL},
    {"an anchor of several lines gives the count", "a\nb\nc\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"old_code\":[\"a\",\"b\"],"
          "\"new_code\":\"x\"}]"),
     "x\nc\n", EDIT_APPLIED, NULL},
    {"an anchor at its line wins over its double", "a\nb\na\n",
     JSON("[{\"action\":\"replace\",\"line_number\":3,\"old_code\":\"a\",\"new_code\":\"x\"}]"),
     "a\nb\nx\n", EDIT_APPLIED, NULL},
    {"an anchor met twice is rejected", "a\nb\na\n",
     JSON("[{\"action\":\"replace\",\"line_number\":2,\"old_code\":\"a\",\"new_code\":\"x\"}]"),
     NULL, EDIT_REJECTED, "line 1 and at line 3"},
    {"an anchor not there is rejected with what is", "a\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":2,\"old_code\":\"zz\",\"new_code\":\"x\"}]"),
     NULL, EDIT_REJECTED, "line 2 is \"b\""},
    {"an anchor may carry the prompt's numbers", "a\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":2,\"old_code\":\"   2| b\","
          "\"new_code\":\"x\"}]"),
     "a\nx\n", EDIT_APPLIED, NULL},
    {"in Python the blanks a line begins with count", "def f():\n    if a:\n        b = 1\n    c\n",
     JSON("{\"action\":\"replace\",\"line_number\":3,\"old_code\":[\"    b = 1\"],"
          "\"new_code\":[\"    b = 2\"]}"),
     NULL, EDIT_REJECTED, "b = 1"},
    {"... those inside of it do not", "def f():\n    if a:\n        b  = 1\n    c\n",
     JSON("{\"action\":\"replace\",\"line_number\":3,\"old_code\":[\"        b = 1\"],"
          "\"new_code\":[\"        b = 2\"]}"),
     "def f():\n    if a:\n        b = 2\n    c\n", EDIT_APPLIED, "except for white space"},
    {"... and SEARCH/REPLACE keeps them", "def f():\n    if a:\n        b = 1\n    c\n",
     "```\n" SR("        b = 1\n", "        b = 2\n        d\n") "```\n",
     "def f():\n    if a:\n        b = 2\n        d\n    c\n", EDIT_APPLIED, NULL},
    {"an anchor may differ in blanks when it is alone", "\tint  a;\nb\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"old_code\":\"  int a;\","
          "\"new_code\":\"x\"}]"),
     "x\nb\n", EDIT_APPLIED, "except for white space"},
    /* SEARCH/REPLACE */
    {"search and replace", "a\nb\nc\n", "```cpp\n" SR("b\n", "x\ny\n") "```\n", "a\nx\ny\nc\n",
     EDIT_APPLIED, NULL},
    {"several of them in several blocks", "a\nb\nc\n",
     "```\n" SR("a\n", "A\n") "```\nand\n```\n" SR("c\n", "C\n") "```\n", "A\nb\nC\n", EDIT_APPLIED,
     NULL},
    {"search and replace without a fence", "a\nb\n", "Like so:\n" SR("b\n", "B\n") "Done.",
     "a\nB\n", EDIT_APPLIED, NULL},
    {"an empty REPLACE deletes", "a\nb\n", "```\n" SR("a\n", "") "```\n", "b\n", EDIT_APPLIED,
     NULL},
    {"shared context does not overlap", "a\nb\nc\n",
     "```\n" SR("a\nb\n", "A\nb\n") SR("b\nc\n", "b\nC\n") "```\n", "A\nb\nC\n", EDIT_APPLIED,
     NULL},
    {"search found twice is rejected", "a\nb\na\n", "```\n" SR("a\n", "x\n") "```\n", NULL,
     EDIT_REJECTED, "line 1 and at line 3"},
    {"search not found is rejected", "a\n", "```\n" SR("q\n", "x\n") "```\n", NULL, EDIT_REJECTED,
     "not found"},
    {"an unfinished block is rejected", "a\n", "```\n<<<<<<< SEARCH\na\n=======\nx\n```\n", NULL,
     EDIT_REJECTED, "not finished"},
    {"an empty SEARCH is rejected", "a\n", "```\n" SR("", "x\n") "```\n", NULL, EDIT_REJECTED,
     "empty"},
    {"a rule of another length is code", "====\na\n", "```\n" SR("====\na\n", "====\nb\n") "```\n",
     "====\nb\n", EDIT_APPLIED, NULL},
    {"two dividers are rejected", "a\n",
     "```\n<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n```\n", NULL, EDIT_REJECTED,
     "dividers"},
    /* unified diff */
    {"a diff", "a\nb\nc\n",
     "```diff\n--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n```\n", "a\nB\nc\n",
     EDIT_APPLIED, NULL},
    {"a diff with wrong numbers is placed by its lines", "a\nb\nc\n",
     "```diff\n@@ -40,9 +41,2 @@\n-c\n+C\n```\n", "a\nb\nC\n", EDIT_APPLIED, "line 3, not 40"},
    {"a diff without numbers", "a\nb\n", "```diff\n@@ @@\n a\n+x\n b\n```\n", "a\nx\nb\n",
     EDIT_APPLIED, NULL},
    {"blank context whose blank was lost", "a\n\nb\n",
     "```diff\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n```\n", "a\n\nB\n", EDIT_APPLIED, NULL},
    {"a pure insertion by number", "a\nb\n", "```diff\n@@ -1,0 +2,1 @@\n+x\n```\n", "a\nx\nb\n",
     EDIT_APPLIED, NULL},
    {"several hunks", "a\nb\nc\nd\n", "```diff\n@@ -1 +1 @@\n-a\n+A\n@@ -4 +4 @@\n-d\n+D\n```\n",
     "A\nb\nc\nD\n", EDIT_APPLIED, NULL},
    {"a deleted line that looks like a header", "-- x\nb\n",
     "```diff\n@@ -1,2 +1,1 @@\n--- x\n b\n```\n", "b\n", EDIT_APPLIED, NULL},
    {"a diff whose lines are not there is rejected", "a\n", "```diff\n@@ -1 +1 @@\n-q\n+x\n```\n",
     NULL, EDIT_REJECTED, "not found"},
    {"a diff without a fence", "a\nb\n", "--- k\n+++ k\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "A\nb\n",
     EDIT_APPLIED, NULL},
    {"a diff of two files is rejected", "a\n",
     "```diff\n--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ c\n@@ -1 +1 @@\n-a\n+b\n```\n", NULL,
     EDIT_REJECTED, "two files"},
    /* which block wins */
    {"quoted code before the edits is not an edit", "a\nb\n",
     "You have:\n```cpp\na\nb\n```\nso:\n" JSON(
         "[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"}]"),
     "x\nb\n", EDIT_APPLIED, NULL},
    {"the last list wins and the note says so", "a\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"draft\"}]") "Better:\n" JSON(
         "[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"final\"}]"),
     "final\n", EDIT_APPLIED, "left out"},
    {"single objects in several blocks count together", "a\nb\n",
     JSON("{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"A\"}")
         JSON("{\"action\":\"replace\",\"line_number\":2,\"new_code\":\"B\"}"),
     "A\nB\n", EDIT_APPLIED, NULL},
    {"the same block twice counts once", "a\nb\n",
     "```\n" SR("a\n", "x\n") "```\nagain:\n```\n" SR("a\n", "x\n") "```\n", "x\nb\n", EDIT_APPLIED,
     "counts once"},
    {"reasoning does not count beside an answer", "a\n",
     "<think>maybe\n" JSON("[{\"action\":\"delete\",\"line_number\":1}]") "</think>\n" JSON(
         "[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"}]"),
     "x\n", EDIT_APPLIED, NULL},
    {"a fence left open in reasoning does not swallow the answer", "a\n",
     "<think>```cpp\nint x;\n</think>\n" JSON(
         "[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"}]"),
     "x\n", EDIT_APPLIED, NULL},
    {"edits only in reasoning count", "a\n",
     "<think>" JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"}]") "</think>",
     "x\n", EDIT_APPLIED, NULL},
    {"a fence on one line", "a\n",
     "```json [{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"}]```", "x\n",
     EDIT_APPLIED, NULL},
    {"JSON behind prose on the same line", "a\n",
     "Edits: [{\"line_number\":1,\"action\":\"replace\",\"new_code\":\"x\"}] as asked.", "x\n",
     EDIT_APPLIED, NULL},
    {"a reply without edits", "a\n", "I would change line 1.", NULL, EDIT_NOTHING, "no edits"},
    {"a reply with code only", "a\n", "```cpp\nint a;\n```\n", NULL, EDIT_NOTHING, "no edits"},
    {"an empty reply", "a\n", "", NULL, EDIT_NOTHING, "no edits"},
    /* bytes */
    {"CRLF stays CRLF", "a\r\nb\r\n",
     JSON("[{\"action\":\"replace\",\"line_number\":1,\"new_code\":\"x\"}]"), "x\r\nb\r\n",
     EDIT_APPLIED, NULL},
    {"no newline at the end stays so", "a\nb",
     JSON("[{\"action\":\"replace\",\"line_number\":2,\"new_code\":\"x\"}]"), "a\nx", EDIT_APPLIED,
     NULL},
    {"appending to a file without a last newline", "a",
     JSON("[{\"action\":\"insert\",\"line_number\":2,\"new_code\":\"x\"}]"), "a\nx", EDIT_APPLIED,
     NULL},
    {"an empty source can be filled", "",
     JSON("[{\"action\":\"insert\",\"line_number\":1,\"new_code\":\"x\"}]"), "x\n", EDIT_APPLIED,
     NULL},
    {"everything can be deleted", "a\nb\n",
     JSON("[{\"action\":\"delete\",\"line_number\":1,\"num_lines\":2}]"), "", EDIT_APPLIED, NULL},
    {"trailing blanks outside the edit stay", "a  \nb\n", "```\n" SR("a\nb\n", "a\nB\n") "```\n",
     "a  \nB\n", EDIT_APPLIED, NULL},
};

static void edits_do_what_the_table_says(void **state)
{
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct edit_case *c = &cases[i];
        struct arena *a = arena_new();
        struct edit_result r;
        const char *want = c->want ? c->want : c->source;
        bool ok;

        edit_apply(text_of(c->source), text_of(c->reply), a, &r);
        ok = r.status == c->status && text_equal(r.source, text_of(want)) &&
             (!c->says || strstr(r.reason, c->says) || strstr(r.note, c->says)) &&
             (r.status != EDIT_APPLIED || r.changes[0]) &&
             (r.status == EDIT_APPLIED) == !r.reason[0];
        if (!ok) {
            print_error("case '%s': %s, reason '%s', note '%s', text '%.*s'\n", c->name,
                        edit_status_names[r.status], r.reason, r.note, (int)r.source.len,
                        r.source.data);
            bad++;
        }
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}

static void the_shown_source_has_a_number_on_every_line(void **state)
{
    struct arena *a = arena_new();

    (void)state;
    assert_string_equal(edit_numbered(text_of("a\n\nb"), a).data, "   1| a\n   2| \n   3| b\n");
    assert_string_equal(edit_numbered(text_of(""), a).data, "");
    arena_free(a);
}

static void the_json_of_a_result_survives_bytes_that_are_not_utf8(void **state)
{
    struct arena *a = arena_new();
    struct edit_result r;
    json_t *o;
    char *s;

    (void)state;
    edit_apply(text_of("\xff\xfe\n"),
               text_of(JSON("[{\"action\":\"delete\",\"line_number\":1,\"old_code\":\"q\"}]")), a,
               &r);
    assert_int_equal(r.status, EDIT_REJECTED);
    o = edit_json(&r);
    s = json_dumps(o, 0);
    assert_non_null(s);
    assert_non_null(strstr(s, "rejected"));
    free(s);
    json_decref(o);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_do_what_the_table_says),
        cmocka_unit_test(the_shown_source_has_a_number_on_every_line),
        cmocka_unit_test(the_json_of_a_result_survives_bytes_that_are_not_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
