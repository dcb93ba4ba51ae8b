#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024 /* one write of this size to a pipe is atomic, so lines of threads never mix */

static _Atomic enum log_level threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&threshold, level, memory_order_relaxed);
}

static size_t stamp(char *out, size_t size)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &utc);
    return len + (size_t)snprintf(out + len, size - len, ".%03ldZ", now.tv_nsec / 1000000);
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"debug", "info ", "warn ", "error"};
    if (level < atomic_load_explicit(&threshold, memory_order_relaxed))
        return;

    char line[LINE_MAX_BYTES];
    size_t len = stamp(line, sizeof line);
    len += (size_t)snprintf(line + len, sizeof line - len, " %s ", names[level]);
    size_t text = len;

    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(line + len, sizeof line - len - 1, format, args);
    va_end(args);
    if (wrote > 0)
        len += (size_t)wrote < sizeof line - len - 1 ? (size_t)wrote : sizeof line - len - 2;

    for (size_t i = text; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nowhere left to say it */
}
