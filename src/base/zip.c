/* SPDX-License-Identifier: Apache-2.0 */
/* zip.c - a ZIP archive in memory; see zip.h. */
#include "base/zip.h"

#include <string.h>

enum {
    VERSION = 20,
    UTF8_NAMES = 1 << 11,
    FIRST_DATE = 1 << 5 | 1, /* 1980-01-01 */
    UNIX_HOST = 3 << 8,
};
static const uint32_t plain_file = 0100644u << 16; /* mode, in the upper half */

static uint32_t crc32(struct text t)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < t.len; i++) {
        crc ^= (unsigned char)t.data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put(struct buf *b, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++)
        buf_putc(b, (char)(value >> 8 * i & 0xff));
}

/* Fields that a file's local header and its directory entry share. */
static void put_facts(struct buf *b, struct text data, size_t name_len)
{
    put(b, 2, VERSION);
    put(b, 2, UTF8_NAMES);
    put(b, 2, 0); /* stored */
    put(b, 2, 0); /* time */
    put(b, 2, FIRST_DATE);
    put(b, 4, crc32(data));
    put(b, 4, data.len);
    put(b, 4, data.len);
    put(b, 2, name_len);
    put(b, 2, 0); /* no extra field */
}

struct zip zip_init(size_t limit)
{
    return (struct zip){.files = buf_init(limit), .directory = buf_init(limit)};
}

void zip_add(struct zip *z, const char *name, struct text data)
{
    size_t len = strlen(name), at = z->files.len;

    put(&z->files, 4, 0x04034b50);
    put_facts(&z->files, data, len);
    buf_add(&z->files, name, len);
    buf_add(&z->files, data.data, data.len);

    put(&z->directory, 4, 0x02014b50);
    put(&z->directory, 2, UNIX_HOST | VERSION);
    put_facts(&z->directory, data, len);
    put(&z->directory, 2, 0); /* comment */
    put(&z->directory, 2, 0); /* disk */
    put(&z->directory, 2, 0); /* internal attributes */
    put(&z->directory, 4, plain_file);
    put(&z->directory, 4, at);
    buf_add(&z->directory, name, len);
    z->count++;
}

struct text zip_end(struct zip *z)
{
    size_t at = z->files.len;

    buf_add(&z->files, z->directory.data, z->directory.len);
    put(&z->files, 4, 0x06054b50);
    put(&z->files, 4, 0); /* disks */
    put(&z->files, 2, z->count);
    put(&z->files, 2, z->count);
    put(&z->files, 4, z->directory.len);
    put(&z->files, 4, at);
    put(&z->files, 2, 0); /* comment */
    return z->files.overflowed || z->directory.overflowed ? (struct text){"", 0}
                                                          : buf_text(&z->files);
}

void zip_release(struct zip *z)
{
    buf_release(&z->files);
    buf_release(&z->directory);
}
