/* tools.h - small things that attempts share. The paths live until the next call. */
#ifndef TESTS_CONFINE_TOOLS_H
#define TESTS_CONFINE_TOOLS_H

#include <stdbool.h>

struct world;

/* The kernel looked at it: not a matter of permission any more. */
bool reached(long result);
bool close_if(int fd);
bool can_open(const char *path, int flags);
bool reads(const char *path);
const char *in(const char *dir, const char *name);
const char *of_victim(const struct world *w, const char *name);

#endif
