/*
 * Reads an INI file through inih, strictly: every line has its number, and what inih would cut or guess (a long line,
 * an indented key, a section name, a line without '=') is an error, or is read as it stands.
 */
#ifndef WEIR_RUN_INIFILE_H
#define WEIR_RUN_INIFILE_H

#include <stdbool.h>

#include "base/slice.h"

#define INIFILE_LINE_MAX 198         /* bytes; what every build of inih can take */
#define INIFILE_BYTES_MAX (16 << 20) /* of a whole file, so that reading /dev/zero ends */

/* Called in the order of the file; slices are valid during the call. */
struct inifile_events {
    void *arg;
    void (*on_section)(void *arg, unsigned line, struct slice name);
    void (*on_key)(void *arg, unsigned line, struct slice key, struct slice value);
    void (*on_error)(void *arg, unsigned line, const char *what); /* line 0: the file as a whole */
};

/* Read the whole file at `path`, continuing after errors. */
void inifile_read(const char *path, const struct inifile_events *events);

#endif
