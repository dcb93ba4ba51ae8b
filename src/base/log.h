/*
 * The log: one line for each message. Any thread may log.
 *
 * Logging never waits for a disk or a pipe: base/log_sink.h writes on a thread of its own. Messages
 * never contain keys or values of clients.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/slice.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVELS };

/*
 * Kinds of messages that clients or the upstream can cause again and again. Each kind has its own
 * rate limit.
 */
enum log_site {
    LOG_SITE_NONE, /* never suppressed */
    LOG_SITE_ACCEPT,
    LOG_SITE_CLIENT_CLOSED,
    LOG_SITE_CONTROL,
    LOG_SITE_DESCRIPTORS,
    LOG_SITE_MEMORY,
    LOG_SITE_NAMED_LIMIT,
    LOG_SITE_OPERATOR,
    LOG_SITE_PROXY,
    LOG_SITE_TLS,
    LOG_SITE_UPSTREAM_AWAY,
    LOG_SITE_UPSTREAM_BACK,
    LOG_SITE_UPSTREAM_CLOSED,
    LOG_SITE_UPSTREAM_LOGIN,
    LOG_SITE_UPSTREAM_OPEN,
    LOG_SITE_COUNT
};

/* Formats of a line. The comment at LOG_LINE_MAX shows a line in each format. */
enum log_format { LOG_AS_TEXT, LOG_AS_LOGFMT, LOG_AS_JSON, LOG_FORMATS };

/* Return the name as in the log: "debug" ... (log_level_name), "accept" ... (log_site_name). */
const char *log_level_name(enum log_level level);
const char *log_site_name(enum log_site site);

/* Sets the least level of lines that are logged. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
enum log_format log_current_format(void);

/*
 * Logs a message in printf's format; an overlong line is cut. Lines of `site` are rate-limited
 * (log_site_admits). The next line of a site tells how many of its lines were suppressed.
 */
__attribute__((format(printf, 3, 4))) void log_at(enum log_site site, enum log_level level,
                                                  const char *format, ...);

/*
 * Sends lines to `path` (NULL: no file), to stderr, or to both. Before log_open and after log_close
 * the calling thread writes lines to stderr. Returns NULL, or the reason why the path cannot be
 * opened (static). Ends the process when no thread can be started.
 */
__attribute__((warn_unused_result)) const char *log_open(const char *path, bool to_stderr);

/*
 * Sets a witness: `tell` gets each line, on the thread that logs the line. `is_logged`: the line
 * also goes to a file or to stderr. Before log_open lines go to the witness alone. NULL: no
 * witness.
 */
void log_set_witness(void (*tell)(enum log_level level, const char *text, bool is_logged));

/* Opens the path again, after the file has been renamed (logrotate). Asynchronous. */
void log_reopen(void);

/*
 * Waits, at most a second, until all lines are written. exit() calls log_flush; abort() and exec do
 * not.
 */
void log_flush(void);

/*
 * Waits as log_flush does, then stops the writing threads. Called once no other thread logs any
 * more.
 */
void log_close(void);

/* Returns how many lines were lost so far: the disk was full, or the pipe was not read. */
uint64_t log_lost(void);

#define log_line(level, ...) log_at(LOG_SITE_NONE, level, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

/* ---- rate limits of sites ---- */

/* Each site may log ten lines at once, then one every five seconds (chosen). */
#define LOG_SITE_BURST 10
#define LOG_SITE_INTERVAL_NS UINT64_C(5000000000)

/*
 * True if the site may log a line now. *suppressed: number of lines suppressed since the last
 * admitted line. A result of false counts as one more suppressed line. Any thread may call; the
 * function uses a compare-and-swap, and no lock.
 */
bool log_site_admits(enum log_site site, uint64_t now_ns, uint64_t *suppressed);

/* Returns how many lines of this site were suppressed since the start. */
uint64_t log_suppressed(enum log_site site);

/* ---- the form of a line ---- */

/*
 *   text    2026-03-01T12:00:00.000Z warn  upstream 127.0.0.1:6379 is away: connection refused
 *   logfmt  ts=2026-03-01T12:00:00.000Z level=warn site=upstream_away msg="..." suppressed=3
 *   json    {"ts":"2026-03-01T12:00:00.000Z","level":"warn","site":"upstream_away","msg":"...",
 *            "suppressed":3}   (on one line)
 */
#define LOG_LINE_MAX 2048 /* bytes of a line, line end included */

struct log_entry {
    struct timespec at; /* since 1970 */
    enum log_level level;
    enum log_site site;
    uint64_t suppressed; /* number of lines of this site suppressed just before */
    struct slice text;
};

/*
 * Writes a line and its line end into `out`, which has LOG_LINE_MAX bytes. A longer line is cut.
 * The line is valid UTF-8. Returns the length of the line. The function is pure.
 */
size_t log_form(char *out, enum log_format format, const struct log_entry *entry);

#endif
