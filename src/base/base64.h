/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as base64 (RFC 4648). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Room for the text of so many bytes, with its '\0'. */
#define BASE64_ROOM(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* With padding. letters_62_63: "+/", or "-_" for addresses. Returns the length. */
size_t base64_encode(const void *data, size_t len, const char *letters_62_63, char *out);

/* Room for the bytes of so much text. */
#define BASE64_BYTES(chars) ((chars) / 4 * 3)

/* Of text with "+/" and padding, nothing else in between. false: it is not that. */
bool base64_decode(const char *text, size_t chars, void *out, size_t *len);

#endif
