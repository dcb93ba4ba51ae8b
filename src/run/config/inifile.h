/*
 * Reads an INI file through the library inih, strictly. Every line has its number. inih would cut
 * or guess at a long line, an indented key, a section name or a line without '='. Here each of
 * these is an error, or is read as written.
 */
#ifndef WEIR_RUN_INIFILE_H
#define WEIR_RUN_INIFILE_H

#include <stdbool.h>

#include "base/slice.h"

#define INIFILE_LINE_MAX 198         /* bytes; every build of inih takes a line of this length */
#define INIFILE_BYTES_MAX (16 << 20) /* of a whole file, so that reading /dev/zero ends */

/* Called in the order of the file; slices are valid during the call. */
struct inifile_events {
    void *arg;
    void (*on_section)(void *arg, unsigned line, struct slice name);
    void (*on_key)(void *arg, unsigned line, struct slice key, struct slice value);
    void (*on_error)(void *arg, unsigned line, const char *what); /* line 0: the file as a whole */
};

/* Reads the whole file at `path`, continuing after errors. */
void inifile_read(const char *path, const struct inifile_events *events);

#endif
