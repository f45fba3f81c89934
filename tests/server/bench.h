/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what the tests of the warm server share: a server in a runtime folder of its own, and
 * loans from it.
 */
#ifndef CUTEGEN_TESTS_SERVER_BENCH_H
#define CUTEGEN_TESTS_SERVER_BENCH_H

#include "base/json.h"
#include "server/warm.h"

enum { PATIENCE_MS = 1200000 }; /* for what must happen; reached only by a failure */

struct bench {
    struct arena *a;
    char *dir;
    struct warm *warm;
};

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int setup(void **state);
int teardown(void **state);
void open_warm(struct bench *b, int idle_s, int memory_mib); /* again, with these limits */

/* A loan of `cat`: a line in, a line out. */
struct child *borrow_tagged(struct bench *b, const char *kind, const char *tag);
struct child *borrow(struct bench *b);                         /* a builder */
void says(struct bench *b, struct child *c, const char *line); /* and is answered with the same */

json_t *status(void);
int server_pid(void);
int count_in(const char *state);
void wait_count(const char *state, int wanted);
bool gone(int pid);
void wait_gone(int pid);

#endif
