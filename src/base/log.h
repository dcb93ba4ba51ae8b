/*
 * The log: one line for each message. Any thread.
 *
 * Logging never waits for a disk or a pipe: base/log_sink.h writes on a thread of its own. Messages never contain keys
 * or values of clients.
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

/*
 * printf's format; an overlong line is cut. `site` is rate-limited (base/log_site.h): how many of its lines were
 * suppressed stands in the next one.
 */
__attribute__((format(printf, 3, 4))) void log_at(enum log_site site, enum log_level level, const char *format, ...);

/*
 * From now on lines go to `path` (NULL: no file), to stderr, or to both. Before log_open and after log_close they are
 * written to stderr by the caller's thread. Returns NULL, or why the path cannot be opened (static). Ends the process
 * when no thread can be started.
 */
__attribute__((warn_unused_result)) const char *log_open(const char *path, bool to_stderr);

/*
 * Lines are also given to `tell`, on the thread that logs them: is_logged says if they go to a file or to stderr, which
 * before log_open they then do not. NULL: to none.
 */
void log_set_witness(void (*tell)(enum log_level level, const char *text, bool is_logged));

/* Open the path again, after the file has been renamed (logrotate). Asynchronous. */
void log_reopen(void);

/* Wait, at most a second, until all lines are written. exit() does it; abort() and exec do not. */
void log_flush(void);

/* The same, then stop the writing threads. To be called once no other thread logs any more. */
void log_close(void);

/* How many lines were lost so far: the disk was full, or nobody read the pipe. */
uint64_t log_lost(void);

#define log_line(level, ...) log_at(LOG_SITE_NONE, level, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
