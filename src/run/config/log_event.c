#include "run/config/log_event.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

#define TEXT_ROOM 1024

void log_event(struct journal *journal, enum log_level level, const char *kind, const char *format, ...)
{
    char text[TEXT_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_line(level, "%s", text);
    journal_add(journal, clock_unix_ms(), kind, "%s", text);
}

void log_order(struct journal *journal, const struct order *order, const char *kind, const char *format, ...)
{
    char text[TEXT_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (order->by[0])
        log_event(journal, LOG_INFO, kind, "%s, by %s", text, order->by);
    else
        log_event(journal, LOG_INFO, kind, "%s", text);
}

void log_event_about(struct journal *journal, enum log_level level, const char *kind, const char *about,
                     const char *text)
{
    log_line(level, "%s", text);
    journal_add_about(journal, clock_unix_ms(), kind, about, text);
}
