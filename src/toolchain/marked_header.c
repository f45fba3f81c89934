/* SPDX-License-Identifier: Apache-2.0 */
/* marked_header.c - CuTe's header of pointers, with a mark in the code of every access through
 * it. */
#include "toolchain/marked_header.h"

#include "base/fs.h"

#include <string.h>

enum { HEADER_LIMIT = 1 << 20 };

/* The one line of gmem_ptr, in every release since 3.2; what comes after it hides
 * iter_adaptor's. */
static const char anchor[] = "  using iter_adaptor<P, gmem_ptr<P>>::iter_adaptor;\n";

static const char before_mark[] =
    "  using cutegen_base = iter_adaptor<P, gmem_ptr<P>>;\n"
    "  template <class Q>\n"
    "  static __forceinline__ __device__ typename cutegen_base::reference cutegen_seen(Q q) {\n"
    "    if constexpr (is_pointer<Q>::value) {\n"
    "      Q p;\n"
    "      asm(\"mov.b64 %0, %1; // ";
static const char after_mark[] =
    "\" : \"=l\"(p) : \"l\"(q));\n"
    "      return *p;\n"
    "    } else\n"
    "      return *q;\n"
    "  }\n"
    "  __forceinline__ __device__ typename cutegen_base::reference operator*() const {\n"
    "    return cutegen_seen(this->ptr_);\n"
    "  }\n"
    "  template <class Index>\n"
    "  __forceinline__ __device__ typename cutegen_base::reference operator[](Index const &i) "
    "const "
    "{\n"
    "    return cutegen_seen(this->ptr_ + i);\n"
    "  }\n";

char *marked_header(const json_t *includes, const char *mark, struct arena *a)
{
    for (size_t i = 0; i < json_array_size(includes); i++) {
        const char *folder = json_string_value(json_array_get(includes, i));
        const char *path = folder ? path_join(a, folder, MARKED_HEADER_NAME) : NULL;
        struct error ignored = {0};
        struct text text;
        const char *at;
        size_t before;

        if (!path || !file_exists(path) || !file_read(path, HEADER_LIMIT, a, &text, &ignored))
            continue;
        at = text.len ? memmem(text.data, text.len, anchor, strlen(anchor)) : NULL;
        if (!at)
            return NULL;
        before = (size_t)(at - text.data) + strlen(anchor);
        return arena_printf(a, "%.*s%s%s%s%.*s", (int)before, text.data, before_mark, mark,
                            after_mark, (int)(text.len - before), text.data + before);
    }
    return NULL;
}
