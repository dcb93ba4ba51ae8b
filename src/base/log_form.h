/*
 * How a line of the log looks:
 *
 *   text    2026-03-01T12:00:00.000Z warn  upstream 127.0.0.1:6379 is away: connection refused
 *   logfmt  ts=2026-03-01T12:00:00.000Z level=warn site=upstream_away msg="upstream ..." suppressed=3
 *   json    {"ts":"2026-03-01T12:00:00.000Z","level":"warn","site":"upstream_away","msg":"upstream ...","suppressed":3}
 *
 * Pure; allocates nothing.
 */
#ifndef WEIR_BASE_LOG_FORM_H
#define WEIR_BASE_LOG_FORM_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/log_words.h"
#include "base/slice.h"

#define LOG_LINE_MAX 2048 /* with its line end */

struct log_entry {
    struct timespec at; /* since 1970 */
    enum log_level level;
    enum log_site site;
    uint64_t suppressed; /* how many lines of this site were left out just before it */
    struct slice text;
};

/*
 * Write a line, its end included, into out, which has LOG_LINE_MAX bytes; cut if longer. Valid UTF-8. Returns its
 * length.
 */
size_t log_form(char *out, enum log_format format, const struct log_entry *entry);

#endif
