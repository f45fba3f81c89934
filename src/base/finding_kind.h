/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding_kind.h - the kinds of findings that a runner reports and the judge decides on.
 *
 * Between processes, in stores and in reports a kind is written as its name. Inside a process it is
 * the enum, so that no decision depends on wording. To add one: a row here, its verdict in
 * src/eval/evidence.c.
 */
#ifndef BASE_FINDING_KIND_H
#define BASE_FINDING_KIND_H

#define FINDING_KIND_TABLE(X)                                                                      \
    X(OUT_OF_BOUNDS, "out-of-bounds access")                                                       \
    X(MISALIGNED, "misaligned access")                                                             \
    X(WRITE_TO_INPUT, "write to an input")                                                         \
    X(UNINITIALISED, "uninitialised read")                                                         \
    X(RACE_SHARED, "shared-memory race")                                                           \
    X(RACE_GLOBAL, "global-memory race")                                                           \
    X(ASYNC_NOT_WAITED, "asynchronous copy not waited for")                                        \
    X(ASYNC_OVERWRITE, "asynchronous copy overwritten")                                            \
    X(DIVERGENT_BARRIER, "divergent barrier")                                                      \
    X(DIVERGENT_COLLECTIVE, "divergent collective")                                                \
    X(DEADLOCK, "deadlock")                                                                        \
    X(TIMEOUT, "timeout")                                                                          \
    X(TRAP, "trap")                                                                                \
    X(ASSERTION, "failed assertion")                                                               \
    X(MBARRIER, "mbarrier misuse")                                                                 \
    X(PROXY, "missing proxy fence")                                                                \
    X(TENSOR_MAP, "bad tensor map")                                                                \
    X(CLUSTER, "cluster misuse")                                                                   \
    X(WGMMA, "wgmma not waited for")                                                               \
    X(WGMMA_FENCE, "missing wgmma fence")                                                          \
    X(TENSOR_MEMORY, "tensor memory used wrongly")                                                 \
    X(TENSOR_FENCE, "missing tcgen05 fence")                                                       \
    X(SHUFFLE, "shuffle outside its mask")                                                         \
    X(MISSING_FENCE, "missing fence")                                                              \
    X(SAME_VALUE, "same value stored twice")                                                       \
    X(BARRIER_EXIT, "barrier after an exit")                                                       \
    X(PROXY_READ, "read before a copy, not fenced")                                                \
    X(COPY_EXIT, "copy after an exit")

enum finding_kind {
    FINDING_UNKNOWN, /* a name that is not in the table */
#define FINDING_KIND_ENUM(kind, name) FINDING_##kind,
    FINDING_KIND_TABLE(FINDING_KIND_ENUM)
#undef FINDING_KIND_ENUM
};

const char *finding_kind_name(enum finding_kind kind); /* FINDING_UNKNOWN: "finding" */
enum finding_kind finding_kind_of(const char *name);

#endif
