/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.h - start a program that outlives us; private to this room.
 *
 * It has no waiting parent, no terminal, and only three of our descriptors: fds[0] and fds[1]
 * become its stdin and stdout, fds[2] its descriptor 3. stderr is /dev/null. Under a supervisor
 * (base/proc.h) it would be killed with all other descendants, so the server starts it.
 */
#ifndef SERVER_LEAVE_H
#define SERVER_LEAVE_H

#include "base/error.h"

enum { LEAVE_FD = 3 };

bool leave_start(char *const *argv, char *const *env, const char *dir, const int fds[3],
                 struct error *err);

#endif
