/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copier_module.c - cutegen-copier.so: copier_serve() for Python (oracle/copier.py).
 *
 * 1: a program was made; 0: the lender has gone; -1: it failed, and cutegen_copier_error() says
 * why.
 */
#include "confine/copier.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int cutegen_copier_serve(int fd, const struct copier_hooks *hooks);
EXPORTED const char *cutegen_copier_error(void);

static struct error last;

int cutegen_copier_serve(int fd, const struct copier_hooks *hooks)
{
    last = (struct error){0};
    if (copier_serve(fd, hooks, &last))
        return 1;
    return last.kind == ERROR_NONE ? 0 : -1;
}

const char *cutegen_copier_error(void)
{
    return last.text;
}
