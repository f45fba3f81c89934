/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.h - escape text from models and tasks.
 *
 * Whatever the bytes, they cannot add markup to the page, change a terminal's state or make JSON
 * invalid. Nothing is dropped silently: a byte that cannot be shown is replaced by a visible mark.
 */
#ifndef REPORT_ESCAPE_H
#define REPORT_ESCAPE_H

#include "base/buf.h"

/* For the body of an element and for a double-quoted attribute. */
void html_add(struct buf *b, struct text t);
void html_puts(struct buf *b, const char *s); /* NULL: nothing */

/* Valid UTF-8 without control characters except tab and newline; for terminals and JSON. */
void plain_add(struct buf *b, struct text t);
const char *plain(const char *s, struct arena *a); /* one line: newlines become spaces; NULL: "" */

#endif
