/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as base64 (RFC 4648). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Size of the base64 text of that many bytes, with its '\0'. */
#define BASE64_ROOM(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* With padding. letters_62_63: "+/", or "-_" for addresses. Returns the length. */
size_t base64_encode(const void *data, size_t len, const char *letters_62_63, char *out);

/* Upper bound of the bytes in that many characters of base64. */
#define BASE64_BYTES(chars) ((chars) / 4 * 3)

/* Accepts only "+/" text with padding and nothing in between; anything else returns false. */
bool base64_decode(const char *text, size_t chars, void *out, size_t *len);

#endif
