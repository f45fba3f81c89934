/* base64.h - bytes as base64 (RFC 4648). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

/* Room for the text of so many bytes, with its '\0'. */
#define BASE64_ROOM(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* With padding. letters_62_63: "+/", or "-_" for addresses. Returns the length. */
size_t base64_encode(const void *data, size_t len, const char *letters_62_63, char *out);

#endif
