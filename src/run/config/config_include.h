/*
 * The files that an `include` line names.
 */
#ifndef WEIR_RUN_CONFIG_INCLUDE_H
#define WEIR_RUN_CONFIG_INCLUDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define INCLUDE_FILES_MAX 256
#define INCLUDE_DEPTH_MAX 8

struct include_paths {
    char **at; /* heap, sorted by byte */
    size_t count;
};

/*
 * The paths that fit `pattern` (* ? [...]), which is relative to the folder of the file `from`. Without such a
 * character it is one file, which must be there. False: `why` says what is wrong. To be freed with include_paths_fini.
 */
__attribute__((warn_unused_result)) bool include_paths(const char *from, struct slice pattern,
                                                       struct include_paths *paths, char *why, size_t why_size);

/* What to say behind a pattern that nothing fits: "", or that of several paths commas stand between. */
const char *include_comma_hint(struct slice pattern);

void include_paths_fini(struct include_paths *paths);

#endif
