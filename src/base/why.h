/*
 * What is wrong with a word of the configuration, in a message: said, and found among the words that are known.
 *
 * Without file and line: config_file.h puts them in front.
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

/* The index of `value` in `words`, in any case of letters; NULL stands behind the last. Their number: it is none. */
size_t choice_find(const char *const *words, struct slice value);

/* The same into *index. False: it is none, and `why` says that it is neither the one nor the other. */
__attribute__((warn_unused_result)) bool choice_take(const char *const *words, struct slice value, unsigned *index,
                                                     char *why, size_t why_size);

/*
 * The nearest known name, for "did you mean ...?".
 * Of the n names that name_at(arg, 0 .. n-1) gives, the one with the fewest edits (insert, delete, replace, swap two
 * neighbours) from `text`, case aside; the first of several. Empty when none is within a third of the longer name's
 * length (one edit at least, three at most). Names beyond 64 bytes are never near.
 */
struct slice near_name(struct slice text, size_t n, struct slice (*name_at)(const void *arg, size_t i),
                       const void *arg);

#endif
