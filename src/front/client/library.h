/*
 * What is known of the libraries that clients use: names and versions, each kept once for all clients of a worker that
 * say the same.
 */
#ifndef WEIR_FRONT_LIBRARY_H
#define WEIR_FRONT_LIBRARY_H

#include <stdbool.h>

#include "base/list.h"
#include "base/slice.h"

#define LIBRARY_TEXT_MAX 256 /* bytes of a name or version; a longer one is not told to other lanes */

/* Counted. */
struct library {
    struct list in_known;
    unsigned holders;
    size_t name_len;
    size_t version_len;
    char text[]; /* the name, then the version */
};

/*
 * Hold the one that differs from `held` (NULL: nothing is known) in one word, in its place. False: out of memory, and
 * nothing has changed.
 */
__attribute__((warn_unused_result)) bool library_change(struct list *known, struct library **held, bool is_version,
                                                        struct slice value);
struct library *library_get(struct library *library); /* one holder more; NULL: nothing */
void library_put(struct library *library);            /* NULL: nothing */

struct slice library_name(const struct library *library); /* NULL: empty */
struct slice library_version(const struct library *library);

#endif
