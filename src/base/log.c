#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_form.h"
#include "base/log_sink.h"
#include "base/log_site.h"

#define TEXT_ROOM 1024 /* of a message */
#define LAST_WAIT_NS NS_PER_S

enum { TO_FILE, TO_STDERR, SINKS };

static struct log_sink *sinks[SINKS]; /* changed only while no other thread runs */
static uint64_t lost_before;          /* lines lost by sinks that were freed */
static _Atomic enum log_level threshold = LOG_INFO;
static _Atomic enum log_format current = LOG_AS_TEXT;
static void (*_Atomic witness)(enum log_level level, const char *text, bool is_logged);

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&threshold, level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&current, format, memory_order_relaxed);
}

enum log_format log_current_format(void)
{
    return atomic_load_explicit(&current, memory_order_relaxed);
}

void log_set_witness(void (*tell)(enum log_level level, const char *text, bool is_logged))
{
    atomic_store_explicit(&witness, tell, memory_order_relaxed);
}

static bool is_open(void)
{
    return sinks[TO_FILE] != NULL || sinks[TO_STDERR] != NULL;
}

/* False: there is no witness. */
static bool tell_witness(enum log_level level, const char *text)
{
    void (*tell)(enum log_level, const char *, bool) = atomic_load_explicit(&witness, memory_order_relaxed);
    if (tell != NULL)
        tell(level, text, is_open());
    return tell != NULL;
}

static void give(const char *line, size_t len, bool is_told)
{
    if (!is_open() && !is_told) {
        if (write(STDERR_FILENO, line, len) < 0)
            return; /* there is nowhere to report that */
    }
    for (size_t i = 0; i < SINKS; i++)
        if (sinks[i] != NULL)
            log_sink_add(sinks[i], line, len);
}

void log_at(enum log_site site, enum log_level level, const char *format, ...)
{
    char text[TEXT_ROOM];
    char line[LOG_LINE_MAX];
    struct log_entry entry = {.level = level, .site = site};
    if (level < atomic_load_explicit(&threshold, memory_order_relaxed) ||
        !log_site_admits(site, clock_ns(), &entry.suppressed))
        return;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0)
        return;
    bool is_told = tell_witness(level, text);
    entry.text = slice_of(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
    clock_gettime(CLOCK_REALTIME, &entry.at);
    give(line, log_form(line, log_current_format(), &entry), is_told);
}

/* ---- sinks ---- */

const char *log_open(const char *path, bool to_stderr)
{
    struct log_sink *file = path != NULL ? log_sink_new(path, -1) : NULL;
    if (path != NULL && file == NULL)
        return strerror(errno);
    struct log_sink *terminal = to_stderr || path == NULL ? log_sink_new(NULL, STDERR_FILENO) : NULL;
    if (file == NULL && terminal == NULL)
        return strerror(errno);
    sinks[TO_FILE] = file;
    sinks[TO_STDERR] = terminal;
    atexit(log_flush);
    return NULL;
}

void log_reopen(void)
{
    if (sinks[TO_FILE] != NULL)
        log_sink_reopen(sinks[TO_FILE]);
}

static uint64_t until(uint64_t end_ns)
{
    uint64_t now_ns = clock_ns();
    return now_ns < end_ns ? end_ns - now_ns : 0;
}

void log_flush(void)
{
    uint64_t end_ns = clock_ns() + LAST_WAIT_NS;
    for (size_t i = 0; i < SINKS; i++)
        if (sinks[i] != NULL)
            (void)log_sink_flush(sinks[i], until(end_ns));
}

/* All sinks end at the same time, so that two that are stuck share the one second. */
void log_close(void)
{
    uint64_t end_ns = clock_ns() + LAST_WAIT_NS;
    for (size_t i = 0; i < SINKS; i++)
        if (sinks[i] != NULL)
            log_sink_end(sinks[i]);
    for (size_t i = 0; i < SINKS; i++) {
        struct log_sink *sink = sinks[i];
        sinks[i] = NULL;
        if (sink == NULL)
            continue;
        lost_before += log_sink_lost(sink);
        log_sink_free(sink, until(end_ns));
    }
}

uint64_t log_lost(void)
{
    uint64_t lost = lost_before;
    for (size_t i = 0; i < SINKS; i++)
        if (sinks[i] != NULL)
            lost += log_sink_lost(sinks[i]);
    return lost;
}
