/*
 * The last events that an operator should know of, for LIMIT LOG: limits that refuse, orders and reloads, what
 * becomes of upstreams and of weir itself.
 *
 * Three kinds of events have room of their own, so that what happens all day does not push out what somebody has
 * ordered.
 * An event that is there already, of the same kind and about the same, is not added again: it is counted, and becomes
 * the
 * newest. Any thread; a mutex inside, held while an event is copied. Memory is fixed, about 250 KB. For rare events,
 * not for every refusal.
 */
#ifndef WEIR_LIMIT_JOURNAL_H
#define WEIR_LIMIT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

#define JOURNAL_ROOM 128 /* events: of limits; of orders; of upstreams and weir itself */
#define JOURNAL_EVENTS (3 * JOURNAL_ROOM)
#define JOURNAL_KIND_MAX 31
#define JOURNAL_TEXT_MAX 511

struct journal;

struct journal_event {
    uint64_t id;            /* 0, 1, 2 ...; missing ones have been overwritten, or have happened again since */
    uint64_t unix_ms;       /* when it happened last */
    uint64_t first_unix_ms; /* and first */
    uint64_t count;         /* how often */
    char kind[JOURNAL_KIND_MAX + 1];
    char text[JOURNAL_TEXT_MAX + 1]; /* of the last time */
};

/* Never fails: out of memory ends the process. */
struct journal *journal_new(void);
void journal_free(struct journal *journal);

/*
 * Add an event that happened at unix_ms: `kind` is one word, `format` printf's. Longer texts are cut, control
 * characters become '?'. What it is about is its text.
 */
__attribute__((format(printf, 4, 5))) void journal_add(struct journal *journal, uint64_t unix_ms, const char *kind,
                                                       const char *format, ...);

/* The same where the text says more than what it is about, as numbers that are others each time. */
void journal_add_about(struct journal *journal, uint64_t unix_ms, const char *kind, const char *about,
                       const char *text);

/* Log a line, and add it as an event of this moment; printf's format. */
__attribute__((format(printf, 4, 5))) void journal_log(struct journal *journal, enum log_level level, const char *kind,
                                                       const char *format, ...);

/* Copy the newest events, newest first, at most `max`; returns how many. */
size_t journal_last(struct journal *journal, struct journal_event *out, size_t max);

#endif
