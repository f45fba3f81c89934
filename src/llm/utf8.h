/* utf8.h - text from outside as valid UTF-8, so that JSON and terminals can carry it. */
#ifndef LLM_UTF8_H
#define LLM_UTF8_H

#include "base/mem.h"

/* The same bytes when they are valid and hold no NUL; else a copy in which every
 * bad byte is U+FFFD. */
struct text utf8_clean(struct text t, struct arena *a);

#endif
