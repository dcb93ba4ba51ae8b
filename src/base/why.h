/*
 * Messages about a wrong word of the configuration, and the search for the nearest known word.
 *
 * The messages have no file and line: config_file.h puts file and line in front of a message.
 */
#ifndef WEIR_BASE_WHY_H
#define WEIR_BASE_WHY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * Prints into `why`, cut to `size`. Always returns false, so that a failed check is `return
 * why_set(...)`.
 */
__attribute__((format(printf, 3, 4))) bool why_set(char *why, size_t size, const char *format, ...);

/* A message buffer and its size as one argument. */
struct why {
    char *out;
    size_t size;
};

/* Prints into the buffer as why_set does. Always returns false. */
__attribute__((format(printf, 2, 3))) bool why_refuse(struct why why, const char *format, ...);

/* The two arguments for "%.*s", cut to WHY_SHOWN_MAX bytes. */
#define WHY_SHOWN_MAX 80
#define WHY_SLICE(s) (int)((s).len < WHY_SHOWN_MAX ? (s).len : WHY_SHOWN_MAX), (s).at

/*
 * Returns the index of `value` in `words`; case does not matter. The last element of `words` is
 * NULL. If `words` lacks the value, returns the number of words.
 */
size_t choice_find(const char *const *words, struct slice value);

/*
 * Sets *index to the index of `value` in `words`. False if `words` lacks the value: `why` then
 * lists the words as "neither ... nor ...".
 */
__attribute__((warn_unused_result)) bool choice_take(const char *const *words, struct slice value,
                                                     unsigned *index, char *why, size_t why_size);

/*
 * Returns the nearest known name, for "did you mean ...?".
 *
 * name_at(arg, 0 .. n-1) gives the n names. The nearest has the fewest edits (insert, delete,
 * replace, swap two neighbours) from `text`, case aside. Of several nearest names the first is
 * returned. Returns an empty slice if no name is near. The most edits of a near name are a third of
 * the longer name's length, at least one and at most three. Names beyond 64 bytes are never near.
 */
struct slice near_name(struct slice text, size_t n,
                       struct slice (*name_at)(const void *arg, size_t i), const void *arg);

#endif
