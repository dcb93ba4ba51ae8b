#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_sink.h"
#include "base/text.h"

/* ---- names ---- */

const char *log_level_name(enum log_level level)
{
    static const char *const names[LOG_LEVELS] = {"debug", "info", "warn", "error"};
    return names[level];
}

const char *log_site_name(enum log_site site)
{
    static const char *const names[LOG_SITE_COUNT] = {
        [LOG_SITE_NONE] = "none",
        [LOG_SITE_ACCEPT] = "accept",
        [LOG_SITE_CLIENT_CLOSED] = "client_closed",
        [LOG_SITE_CONTROL] = "control",
        [LOG_SITE_DESCRIPTORS] = "descriptors",
        [LOG_SITE_MEMORY] = "memory",
        [LOG_SITE_NAMED_LIMIT] = "named_limit",
        [LOG_SITE_OPERATOR] = "operator",
        [LOG_SITE_PROXY] = "proxy",
        [LOG_SITE_TLS] = "tls",
        [LOG_SITE_UPSTREAM_AWAY] = "upstream_away",
        [LOG_SITE_UPSTREAM_BACK] = "upstream_back",
        [LOG_SITE_UPSTREAM_CLOSED] = "upstream_closed",
        [LOG_SITE_UPSTREAM_LOGIN] = "upstream_login",
        [LOG_SITE_UPSTREAM_OPEN] = "upstream_open",
    };
    return names[site];
}

/* ---- rate limits of sites ---- */

/*
 * The rate limit of one site: GCRA on one word. full_ns is the time at which the site may log its
 * whole burst again.
 */

static struct site {
    _Atomic uint64_t full_ns;
    /* lines suppressed since the last logged line; the next line tells this number */
    _Atomic uint64_t untold;
    _Atomic uint64_t suppressed;
} sites[LOG_SITE_COUNT];

uint64_t log_suppressed(enum log_site site)
{
    return atomic_load_explicit(&sites[site].suppressed, memory_order_relaxed);
}

bool log_site_admits(enum log_site site, uint64_t now_ns, uint64_t *suppressed)
{
    struct site *at = &sites[site];
    *suppressed = 0;
    if (site == LOG_SITE_NONE)
        return true;
    uint64_t full_ns = atomic_load_explicit(&at->full_ns, memory_order_relaxed);
    uint64_t next_ns;
    do {
        next_ns = (full_ns > now_ns ? full_ns : now_ns) + LOG_SITE_INTERVAL_NS;
        if (next_ns - now_ns > LOG_SITE_BURST * LOG_SITE_INTERVAL_NS) {
            atomic_fetch_add_explicit(&at->untold, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&at->suppressed, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&at->full_ns, &full_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    *suppressed = atomic_exchange_explicit(&at->untold, 0, memory_order_relaxed);
    return true;
}

/* ---- the form of a line ---- */

#define TAIL_ROOM 64 /* bytes for the part behind the message */

static size_t stamp(char *out, size_t size, struct timespec at)
{
    struct tm utc;
    gmtime_r(&at.tv_sec, &utc);
    size_t len = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &utc);
    return len + (size_t)snprintf(out + len, size - len, ".%03ldZ", at.tv_nsec / 1000000);
}

/* Writes text for a terminal, with '?' for each control character. */
static size_t put_plain(char *out, size_t room, struct slice text)
{
    size_t len = 0;
    while (text.len > 0) {
        size_t n = utf8_len(text);
        unsigned char c = (unsigned char)text.at[0];
        bool is_control =
            c < ' ' || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)text.at[1] < 0xa0);
        if (len + n + 1 > room)
            break;
        if (n == 0 || is_control)
            out[len++] = '?';
        else
            memcpy(out + len, text.at, n);
        len += n == 0 || is_control ? 0 : n;
        n += n == 0;
        text = slice_of(text.at + n, text.len - n);
    }
    return len;
}

static size_t form_text(char *out, const struct log_entry *entry)
{
    size_t len = stamp(out, LOG_LINE_MAX, entry->at);
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, " %-5s ", log_level_name(entry->level));
    len += put_plain(out + len, LOG_LINE_MAX - TAIL_ROOM - len, entry->text);
    if (entry->suppressed > 0)
        len += (size_t)snprintf(out + len, TAIL_ROOM, " (%" PRIu64 " similar lines suppressed)",
                                entry->suppressed);
    return len;
}

/* The text before each value of a line, and behind the last value. */
struct marks {
    const char *at, *level, *site, *text, *suppressed, *end;
};

static const struct marks logfmt_marks = {"ts=", " level=", " site=", " msg=", " suppressed=", ""};
static const struct marks json_marks = {"{\"ts\":\"",  "\",\"level\":\"",  "\",\"site\":\"",
                                        "\",\"msg\":", ",\"suppressed\":", "}"};

static size_t form_marked(char *out, const struct log_entry *entry, const struct marks *marks)
{
    size_t len = (size_t)snprintf(out, LOG_LINE_MAX, "%s", marks->at);
    len += stamp(out + len, LOG_LINE_MAX - len, entry->at);
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, "%s%s", marks->level,
                            log_level_name(entry->level));
    if (entry->site != LOG_SITE_NONE)
        len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, "%s%s", marks->site,
                                log_site_name(entry->site));
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, "%s", marks->text);
    len += json_quote(out + len, LOG_LINE_MAX - TAIL_ROOM - len, entry->text);
    if (entry->suppressed > 0)
        len += (size_t)snprintf(out + len, TAIL_ROOM, "%s%" PRIu64, marks->suppressed,
                                entry->suppressed);
    return len + (size_t)snprintf(out + len, 2, "%s", marks->end);
}

size_t log_form(char *out, enum log_format format, const struct log_entry *entry)
{
    size_t len = format == LOG_AS_TEXT
                     ? form_text(out, entry)
                     : form_marked(out, entry, format == LOG_AS_JSON ? &json_marks : &logfmt_marks);
    out[len++] = '\n';
    return len;
}

/* ---- the log ---- */

#define TEXT_ROOM 1024 /* bytes of a message */
#define LAST_WAIT_NS NS_PER_S

enum { TO_FILE, TO_STDERR, SINKS };

static struct log_sink *sinks[SINKS]; /* changed only while no other thread logs */
static uint64_t lost_before;          /* lines lost by sinks that have been freed */
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

/* Passes a line to the witness. False if there is no witness. */
static bool tell_witness(enum log_level level, const char *text)
{
    void (*tell)(enum log_level, const char *, bool) =
        atomic_load_explicit(&witness, memory_order_relaxed);
    if (tell != NULL)
        tell(level, text, is_open());
    return tell != NULL;
}

static void log_give(const char *line, size_t len, bool is_told)
{
    if (!is_open() && !is_told) {
        if (write(STDERR_FILENO, line, len) < 0)
            return; /* a failure to write to stderr cannot be reported */
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
    log_give(line, log_form(line, log_current_format(), &entry), is_told);
}

/* ---- sinks ---- */

const char *log_open(const char *path, bool to_stderr)
{
    struct log_sink *file = path != NULL ? log_sink_new(path, -1) : NULL;
    if (path != NULL && file == NULL)
        return strerror(errno);
    struct log_sink *terminal =
        to_stderr || path == NULL ? log_sink_new(NULL, STDERR_FILENO) : NULL;
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

static uint64_t log_until(uint64_t end_ns)
{
    uint64_t now_ns = clock_ns();
    return now_ns < end_ns ? end_ns - now_ns : 0;
}

void log_flush(void)
{
    uint64_t end_ns = clock_ns() + LAST_WAIT_NS;
    for (size_t i = 0; i < SINKS; i++)
        if (sinks[i] != NULL)
            (void)log_sink_flush(sinks[i], log_until(end_ns));
}

/* All sinks end at the same time, so two stuck sinks together cost one second. */
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
        log_sink_free(sink, log_until(end_ns));
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
