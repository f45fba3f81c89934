/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.c - written here, because neither jansson nor glibc, all that base may use, has it.
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

static int six_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t chars, void *out, size_t *len)
{
    unsigned char *p = out;
    size_t pad = 0, n = 0;

    while (pad < 2 && pad < chars && text[chars - 1 - pad] == '=')
        pad++;
    if (chars % 4 != 0)
        return false;
    for (size_t i = 0; i < chars; i += 4) {
        size_t have = i + 4 == chars ? 4 - pad : 4;
        unsigned v = 0;

        for (size_t k = 0; k < 4; k++) {
            int six = k < have ? six_of(text[i + k]) : 0;

            if (six < 0)
                return false;
            v = v << 6 | (unsigned)six;
        }
        for (size_t k = 0; k + 1 < have; k++)
            p[n++] = (unsigned char)(v >> (16 - 8 * k));
    }
    *len = n;
    return true;
}
