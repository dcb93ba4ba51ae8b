/*
 * Says what is wrong with a piece of configuration, without the place: the reader of the file puts that in front.
 */
#ifndef WEIR_BASE_WHY_H
#define WEIR_BASE_WHY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* printf's format into `why`, cut to `size`. Always false, so that a check that fails is `return why_set(...)`. */
__attribute__((format(printf, 3, 4))) bool why_set(char *why, size_t size, const char *format, ...);

/* The same as one argument, for functions that hand it on. */
struct why {
    char *out;
    size_t size;
};

/* Always false too. */
__attribute__((format(printf, 2, 3))) bool why_refuse(struct why why, const char *format, ...);

/* The two arguments of "%.*s"; what is too long to help is cut. */
#define WHY_SHOWN_MAX 80
#define WHY_SLICE(s) (int)((s).len < WHY_SHOWN_MAX ? (s).len : WHY_SHOWN_MAX), (s).at

#endif
