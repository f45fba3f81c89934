/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer.c - parse compute-sanitizer's log; see sanitizer.h.
 *
 * The log's lines have a "=========" margin. A report is a headline and indented lines under it:
 *
 *     ========= Invalid __global__ write of size 4 bytes
 *     =========     at kernel(float *)+0x70 in /w/candidate.cu:6
 *     =========     by thread (1,0,0) in block (2,0,0)
 *     =========     Access to 0x7f01 is misaligned
 *     =========         Device Frame: outer(float *)+0x20 in /w/candidate.cu:9
 *     ========= Error: Race reported between Write access at k+0x120 in /w/candidate.cu:7
 *     =========     and Read access at k+0x160 in /w/candidate.cu:8 [252 hazards]
 *
 * Where CuTe was inlined the first place is in a header and the frames under
 * it lead to the user's file: the first place in that file is the line. A race
 * comes without frames; its other side may be the user's then. A header's line
 * is reported with the header's name.
 */
#include "eval/sanitizer.h"

#include "base/buf.h"
#include "base/finding_kind.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1024, MAX_REPORTS = 64 };

static const char margin[] = "=========";

const char *sanitizer_tool(enum verdict_kind kind)
{
    switch (kind) {
    case VERDICT_CRASH:
    case VERDICT_GUARD_HIT:
    case VERDICT_INPUT_MODIFIED:
        return "memcheck";
    case VERDICT_WRONG_VALUES:
    case VERDICT_NON_FINITE:
        return "racecheck";
    default:
        return NULL;
    }
}

/* One report being read. */
struct report {
    json_t *finding; /* NULL: none open */
    bool own;        /* a line of the user's file was found */
};

/* " in FILE:LINE" at or after `at`; false when there is none. */
static bool find_place(const char *at, char *file, size_t size, int *line)
{
    const char *in = at, *found = NULL, *colon;

    while ((in = strstr(in, " in ")) != NULL) {
        in += 4;
        found = in;
    }
    if (!found || *found == '(' || strncmp(found, "block", 5) == 0)
        return false;
    colon = strchr(found, ':');
    if (!colon || (size_t)(colon - found) >= size)
        return false;
    snprintf(file, size, "%.*s", (int)(colon - found), found);
    *line = (int)strtol(colon + 1, NULL, 10);
    return *line > 0;
}

static void set_place(struct report *r, const char *text, const char *source_file)
{
    char file[MAX_LINE];
    bool own;
    int line;

    if (r->own || !find_place(text, file, sizeof file, &line))
        return;
    own = strcmp(path_base(file), source_file) == 0;
    if (json_object_get(r->finding, "line") && !own)
        return; /* a header's line is replaced by one in the user's file */
    json_object_set_new(r->finding, "file", json_string(path_base(file)));
    json_object_set_new(r->finding, "line", json_integer(line));
    r->own = own;
}

static void add_text(struct report *r, const char *text)
{
    struct buf joined = buf_init(4 * MAX_LINE);

    buf_puts(&joined, json_string_or(r->finding, "text", ""));
    buf_puts(&joined, "; ");
    buf_puts(&joined, text);
    json_object_set_new(r->finding, "text", json_string(joined.data));
    buf_release(&joined);
    if (strstr(text, "misaligned"))
        json_object_set_new(r->finding, "kind", json_string("misaligned access"));
}

static void set_other(struct report *r, const char *text, const char *source_file)
{
    char file[MAX_LINE];
    const char *hazards = strrchr(text, '[');
    int line;

    if (find_place(text, file, sizeof file, &line)) {
        bool own = strcmp(path_base(file), source_file) == 0;

        if (own && r->own) {
            json_object_set_new(r->finding, "other", json_pack("{s:i}", "line", line));
        } else {
            add_text(r, text);
            set_place(r, text, source_file);
        }
    }
    if (hazards)
        json_object_set_new(r->finding, "count", json_integer(strtol(hazards + 1, NULL, 10)));
}

static void set_threads(struct report *r, const char *text)
{
    int t[3], b[3];

    if (sscanf(text, "by thread (%d,%d,%d) in block (%d,%d,%d)", &t[0], &t[1], &t[2], &b[0], &b[1],
               &b[2]) != 6)
        return;
    json_object_set_new(r->finding, "thread", json_pack("[i, i, i]", t[0], t[1], t[2]));
    json_object_set_new(r->finding, "block", json_pack("[i, i, i]", b[0], b[1], b[2]));
}

/* The kind of report that this headline opens, or NULL. */
static const char *headline_kind(const char *text)
{
    static const struct {
        const char *begin;
        enum finding_kind kind;
    } kinds[] = {{"Invalid __", FINDING_OUT_OF_BOUNDS},
                 {"Error: Race reported", FINDING_RACE_SHARED},
                 {"Warning: Race reported", FINDING_RACE_SHARED},
                 {"Uninitialized __", FINDING_UNINITIALISED},
                 {"Barrier error", FINDING_DIVERGENT_BARRIER},
                 {"Trace/breakpoint trap", FINDING_TRAP},
                 {"Illegal instruction", FINDING_TRAP}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strncmp(text, kinds[i].begin, strlen(kinds[i].begin)) == 0)
            return finding_kind_name(kinds[i].kind);
    return NULL;
}

static void take_line(struct report *r, json_t *list, const char *text, bool indented,
                      const char *source_file)
{
    const char *kind = indented ? NULL : headline_kind(text);

    if (!indented)
        *r = (struct report){0};
    if (kind && json_array_size(list) < MAX_REPORTS) {
        r->finding = json_pack("{s:s, s:s, s:o}", "kind", kind, "kernel", "", "text",
                               json_from_string(text));
        json_array_append_new(list, r->finding);
        if (strstr(text, "Race reported"))
            set_place(r, text, source_file);
        return;
    }
    if (!r->finding)
        return;
    if (strncmp(text, "at ", 3) == 0 || strncmp(text, "Device Frame:", 13) == 0)
        set_place(r, text, source_file);
    else if (strncmp(text, "by thread", 9) == 0)
        set_threads(r, text);
    else if (strncmp(text, "and ", 4) == 0 && strstr(text, " access at "))
        set_other(r, text, source_file);
    else if (strncmp(text, "Access ", 7) == 0 || strncmp(text, "and is ", 7) == 0)
        add_text(r, text);
}

json_t *sanitizer_findings(struct text log, const char *source_file)
{
    size_t lead = strlen(margin);
    struct report open = {0};
    json_t *list = json_array();

    for (struct text l; text_next_line(&log, &l);) {
        char line[MAX_LINE];
        size_t spaces;

        if (l.len <= lead || l.len >= sizeof line || !text_starts(l, margin))
            continue;
        memcpy(line, l.data + lead, l.len - lead);
        line[l.len - lead] = '\0';
        spaces = strspn(line, " ");
        take_line(&open, list, line + spaces, spaces > 1, source_file);
    }
    return list;
}
