/* SPDX-License-Identifier: Apache-2.0 */
/* child_protocol.c - JSON lines to and from a child; see child_protocol.h. */
#include "eval/child_protocol.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum talk_end talk(struct child *c, json_t *request_take, int deadline_ms, size_t answer_limit,
                   json_t **answer, struct error *why)
{
    struct arena *a = arena_new();
    char *line = json_line(request_take, a);
    enum child_answer how = CHILD_ENDED;
    enum talk_end end = TALK_ANSWER;
    struct text said;

    *answer = NULL;
    json_decref(request_take);
    if (!child_ask(c, text_of(line), deadline_ms, answer_limit, a, &how, &said, why))
        end = TALK_GARBAGE;
    else if (how == CHILD_LATE)
        end = TALK_LATE;
    else if (how == CHILD_ENDED)
        end = TALK_ENDED;
    else if (!json_parse(said, "the answer", answer, why))
        end = TALK_GARBAGE;
    else if (!json_is_object(*answer)) {
        error_set(why, ERROR_MACHINE, "the answer is not a JSON object");
        json_decref(*answer);
        *answer = NULL;
        end = TALK_GARBAGE;
    }
    arena_free(a);
    return end;
}

const char *talk_last_words(const struct child *c, size_t max, struct arena *a)
{
    struct text t = child_stderr(c, a);
    size_t skip;
    const char *line;

    while (t.len > 0 && (t.data[t.len - 1] == '\n' || t.data[t.len - 1] == ' '))
        t.len--;
    skip = t.len > max ? t.len - max : 0;
    line = skip ? memchr(t.data + skip, '\n', t.len - skip) : NULL;
    if (line)
        skip = (size_t)(line + 1 - t.data);
    return arena_strndup(a, t.data + skip, t.len - skip);
}

bool talk_ok(const json_t *answer, struct error *err)
{
    const char *kind = json_string_or(answer, "kind", "machine");
    const char *hint = json_string_or(answer, "hint", "");

    if (json_bool_or(answer, "ok", false))
        return true;
    error_set(err,
              strcmp(kind, "use") == 0      ? ERROR_USE
              : strcmp(kind, "memory") == 0 ? ERROR_MEMORY
              : strcmp(kind, "busy") == 0   ? ERROR_BUSY
                                            : ERROR_MACHINE,
              "%s", json_string_or(answer, "text", "no reason given"));
    if (*hint)
        error_hint(err, "%s", hint);
    return false;
}
