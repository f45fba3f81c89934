/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_name.c - a closed alphabet and balanced brackets; the compiler decides the rest. */
#include "base/kernel_name.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == ':';
}

/* Only () and [] are counted: < may also compare. */
static bool balanced(const char *s)
{
    char open[MAX_DEPTH];
    int depth = 0;
    for (; *s; s++) {
        if (*s == '(' || *s == '[') {
            if (depth == MAX_DEPTH)
                return false;
            open[depth++] = *s;
        } else if (*s == ')' || *s == ']') {
            if (depth == 0 || open[--depth] != (*s == ')' ? '(' : '['))
                return false;
        }
    }
    return depth == 0;
}

bool kernel_name_ok(const char *name, const char **why)
{
    static const char marks[] = "_:<>,()[] &*+-/%.!=|^~?";
    size_t len = strnlen(name, KERNEL_NAME_MAX + 1);
    *why = NULL;
    if (len == 0)
        *why = "is empty";
    else if (len > KERNEL_NAME_MAX)
        *why = "is too long";
    else if (!begins_name(name[0]))
        *why = "does not begin as a name does";
    for (size_t i = 0; *why == NULL && i < len; i++)
        if (!isalnum((unsigned char)name[i]) && strchr(marks, name[i]) == NULL)
            *why = "has characters that no kernel's name has";
    if (*why == NULL && (strstr(name, "//") != NULL || strstr(name, "/*") != NULL))
        *why = "has a comment";
    if (*why == NULL && !balanced(name))
        *why = "has brackets that do not match";
    return *why == NULL;
}
