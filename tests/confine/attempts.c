/*
 * attempts.c - hostile native code, one function per thing it tries; a file per kind.
 *
 * None changes the machine when it works: what is written is written back, what is signalled
 * expects it. A call that could do harm gets arguments the kernel refuses later: it "worked" when
 * the refusal is not one of permission.
 */
#include "attempts.h"

static const struct attempt_list *const lists[] = {
    &attempts_victim, &attempts_sockets, &attempts_kernel, &attempts_files, &attempts_processes,
};

size_t attempt_count(void)
{
    size_t n = 0;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        n += lists[i]->count;
    return n;
}

const struct attempt *attempt_at(size_t index)
{
    size_t i = 0;

    while (index >= lists[i]->count)
        index -= lists[i++]->count;
    return &lists[i]->rows[index];
}
