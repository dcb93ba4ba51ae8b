/*
 * Messages about what is wrong with a piece of configuration. Without file and line: config_file.h puts them in front.
 */
#ifndef WEIR_BASE_WHY_H
#define WEIR_BASE_WHY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* printf's format into `why`, cut to `size`. Always false, so that a check that fails is `return why_set(...)`. */
__attribute__((format(printf, 3, 4))) bool why_set(char *why, size_t size, const char *format, ...);

/* The same pair as one argument, for functions that pass it on. */
struct why {
    char *out;
    size_t size;
};

/* Always false too. */
__attribute__((format(printf, 2, 3))) bool why_refuse(struct why why, const char *format, ...);

/* The two arguments for "%.*s", cut to WHY_SHOWN_MAX bytes. */
#define WHY_SHOWN_MAX 80
#define WHY_SLICE(s) (int)((s).len < WHY_SHOWN_MAX ? (s).len : WHY_SHOWN_MAX), (s).at

#endif
