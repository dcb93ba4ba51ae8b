/*
 * What a new process of an upgrade tells the one that has started it, of why it does not serve: its warnings and
 * errors,
 * over the socket pair on which it says that it serves (run/upgrade.h). So the reason stands in the log of the process
 * that goes on, in that log's format, and a full pipe on stderr holds up no upgrade.
 *
 * A line is a mark, 'e' or 'w', the text and a line end; no other byte of it is below ' '. The byte that says that
 * the new process serves is no mark. Only the new process' main thread tells.
 */
#ifndef WEIR_RUN_LAST_WORDS_H
#define WEIR_RUN_LAST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

#define LAST_WORDS_FD 3 /* the new process' end of the socket pair */

/* In the environment of the new process: the pid of the old one, if that one reads such lines. */
#define LAST_WORDS_TO "WEIR_UPGRADE_REASONS"

#define LAST_WORDS_TOLD '\x01'   /* the mark of a line that stands in no log yet */
#define LAST_WORDS_LOGGED '\x02' /* and of one that the new process has logged itself */

/* ---- the new process ---- */

/* If another process waits for it: from now on that one is told what is logged with level warn or error. */
void last_words_open(void);

/* True if it is. Before log_open lines go there instead of stderr. */
bool last_words_are_heard(void);

/* No more: this process serves, or is about to. Safe whatever has been done. */
void last_words_close(void);

/* ---- the old process ---- */

#define LAST_WORDS_MAX 1024 /* bytes of a line; what is beyond is cut */

/* Zero before the first byte. */
struct last_words {
    char mark; /* of the line that is being read; 0: none is */
    size_t len;
    char line[LAST_WORDS_MAX];
};

/* Called for each whole line; the text ends with NUL. */
typedef void last_words_line(void *arg, bool is_logged, enum log_level level, const char *text);

/* Read one more byte. False: it belongs to no line, so the new process serves. */
bool last_words_read(struct last_words *words, char byte, last_words_line *on_line, void *arg);

#endif
