/* support.h - a small task, a small run and a folder to keep them in, for the store's tests. */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

#include "store/store.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct place {
    struct arena *a;
    char *dir; /* of runs */
    struct store *s;
};

/* The server that the tests are to use, NULL for SQLite: $CUTEGEN_TEST_STORE (postgres.sh). */
const char *test_url(void);

int place_set_up(void **state);    /* an empty store in a new folder */
int place_tear_down(void **state); /* removes it */
void place_reopen(struct place *p);
void place_empty(struct place *p); /* closes it; the next to open it makes it anew */

/* cmocka's assert_true with the error's text on the way out. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s (%s)", #call, err.text, err.hint);                                    \
    } while (0)

extern const struct device small_device;
/* A task with a description; the json_t is the caller's. */
struct task small_task(struct arena *a);
struct run *small_run(struct place *p);
/* One whole attempt as the loop does it: call, begin, end. */
bool whole_attempt(struct run *r, int number, struct error *err);
/* "ok" or what PRAGMA integrity_check and foreign_key_check complain of. */
const char *store_health(const char *runs_dir, struct arena *a);
/* The text of attempt `number`'s reply and source, so that a reader can check them. */
const char *reply_text(struct arena *a, int number);
const char *source_text(struct arena *a, int number);

#endif
