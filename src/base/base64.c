/*
 * base64.c - the encoder; by hand, since no library that base may use has one (jansson does not,
 * and glibc has none).
 */
#include "base/base64.h"

static char letter(unsigned six, const char *last_two)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    return six < 62 ? letters[six] : last_two[six - 62];
}

size_t base64_encode(const void *data, size_t len, const char *letters_62_63, char *out)
{
    const unsigned char *p = data;
    size_t n = 0;

    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)p[i] << 16 | (i + 1 < len ? (unsigned)p[i + 1] << 8 : 0) |
                     (i + 2 < len ? p[i + 2] : 0);

        out[n++] = letter(v >> 18, letters_62_63);
        out[n++] = letter(v >> 12 & 63, letters_62_63);
        out[n++] = i + 1 < len ? letter(v >> 6 & 63, letters_62_63) : '=';
        out[n++] = i + 2 < len ? letter(v & 63, letters_62_63) : '=';
    }
    out[n] = '\0';
    return n;
}
