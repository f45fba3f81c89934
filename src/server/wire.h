/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the protocol between the warm server and its clients.
 *
 * A packet socket in the user's private runtime folder: one packet is one
 * JSON object, and may carry descriptors. A connection says hello, makes one request and, if that
 * was for a process, lives as long as the loan.
 *
 *     {"do": "hello", "protocol": 2, "version": "0.1.0", "stamp": N}
 *       -> {"ok": true, "protocol": 2, "version": "0.1.0", "stamp": N, "pid": N,
 *           "freedom": [N, ...]}
 *     {"do": "lend", "kind": "oracle", "tag": "...", "once": false, "key": "...", "argv": [...],
 *      "env": [...], "dir": "/", "no_network": false, "output_limit": N, "address_limit": N,
 *      "resident_limit": N, "disk_limit": N, "tmp_in_memory": false, "confine": POLICY}
 *       -> {"ok": true, "pid": N, "warm": true, "tmp": DIR} and stdin, stdout, stderr of the
 * process
 *       <- the word CHILD_RETURNED, or only the end: the process is then unfit for others
 *       <- the word CHILD_HERE -> the same word: the server lives
 *     {"do": "leave", "argv": [...], "env": [...], "dir": "/"} with the descriptors that become
 *       its 0, 1 and 3
 *       -> {"ok": true}; the process outlives server and client
 *     {"do": "status"} -> {"ok": true, ...};   {"do": "trim"}, {"do": "stop"} -> {"ok": true}
 *
 * `stamp` is the build time of the server's program, which distinguishes two builds of one version.
 * `freedom`: its resource limits, priority and cores, which its processes inherit.
 */
#ifndef SERVER_WIRE_H
#define SERVER_WIRE_H

#include "base/error.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

enum { WIRE_PROTOCOL = 2, WIRE_PACKET_BYTES = 160 << 10, WIRE_FDS = 3 };

/* The server's socket and lock; both in the private runtime folder. */
bool wire_paths(struct arena *a, char **socket_path, char **lock_path, struct error *err);
/* When this program file was built; 0 if unknown. */
int64_t wire_stamp(const char *program);
/* What the processes of this one inherit: limits (ulimit), priority (nice), cores (taskset); more
 * is better. A new reference. */
json_t *wire_freedom(void);
/* Has this process at least one of them greater? Unknown counts as equal. */
bool wire_is_freer_than(const json_t *freedom);
/* Sends one packet; fds is NULL or holds three. False if it was not sent completely. */
bool wire_send(int socket, const json_t *message, const int *fds);
/* Takes over the message. */
bool wire_send_new(int socket, json_t *message_take, const int *fds);
/* The next packet as text, with -1 in fds if it carried none; false: the other side has closed, or
 * (errno EAGAIN) has not sent anything. */
bool wire_receive(int socket, struct arena *a, struct text *out, int fds[WIRE_FDS]);
/* Is the other end a process of this user? */
bool wire_peer_is_us(int socket);

#endif
