/*
 * One line a message. Any thread.
 *
 * Nobody who logs waits for a disk or a pipe: base/log_sink.h writes, on a thread of its own. Never keys or values of
 * clients in a message.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log_words.h"

/* Lines below `level` are dropped. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
enum log_format log_current_format(void);

/* printf's format; an overlong line is cut. `site` says what may be suppressed, and then told of in its next line. */
__attribute__((format(printf, 3, 4))) void log_at(enum log_site site, enum log_level level, const char *format, ...);

/*
 * Until log_open and after log_close a line is written to stderr by whoever logs.
 *
 * From log_open on lines go to `path` (NULL: no file), to stderr, or to both. Returns NULL, or why not: the path cannot
 * be opened. Ends the process when there is no thread for it.
 */
__attribute__((warn_unused_result)) const char *log_open(const char *path, bool to_stderr);

/* Open the file anew, under the same name: it has been moved away. Asynchronous. */
void log_reopen(void);

/* Wait, a second at most, until what was logged is written. Done by exit(), but not by abort() or exec. */
void log_flush(void);

/* The same, then stop. After the last thread that may log has ended. */
void log_close(void);

/* Lines that could not be written, ever: a full disk, or a pipe that nobody reads. */
uint64_t log_lost(void);

#define log_line(level, ...) log_at(LOG_SITE_NONE, level, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
