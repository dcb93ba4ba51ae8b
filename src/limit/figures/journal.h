/*
 * The latest events for operators, for LIMIT LOG: limits that refuse, admin commands and reloads,
 * and changes of upstreams and of weir itself.
 *
 * Three kinds of events have separate room: frequent events do not push out admin commands. An
 * event with the kind and topic of an earlier event is not added again. The earlier event is
 * counted once more, and becomes the newest. Any thread; a mutex inside, held while an event is
 * copied. Memory is fixed, about 250 KB. For rare events, not for every refusal.
 */
#ifndef WEIR_LIMIT_JOURNAL_H
#define WEIR_LIMIT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* events of each kind: limits; admin commands; upstreams and weir itself */
#define JOURNAL_ROOM 128
#define JOURNAL_EVENTS (3 * JOURNAL_ROOM)
#define JOURNAL_KIND_MAX 31
#define JOURNAL_TEXT_MAX 511

struct journal;

struct journal_event {
    /* 0, 1, 2 ...; an id is missing if its event was overwritten or has recurred */
    uint64_t id;
    uint64_t unix_ms;       /* last occurrence */
    uint64_t first_unix_ms; /* first occurrence */
    uint64_t count;         /* number of occurrences */
    char kind[JOURNAL_KIND_MAX + 1];
    char text[JOURNAL_TEXT_MAX + 1]; /* of the last occurrence */
};

/* Aborts the process if memory is out. */
struct journal *journal_new(void);
void journal_free(struct journal *journal);

/*
 * Adds an event of time unix_ms. `kind` is one word; `format` is as for printf. Longer texts are
 * cut, and control characters become '?'. Events of equal kind and text are one event.
 */
__attribute__((format(printf, 4, 5))) void journal_add(struct journal *journal, uint64_t unix_ms,
                                                       const char *kind, const char *format, ...);

/*
 * journal_add for texts that differ each time, for example by numbers. Events of equal kind and
 * `about` are one event.
 */
void journal_add_about(struct journal *journal, uint64_t unix_ms, const char *kind,
                       const char *about, const char *text);

/* Logs a line and adds it as an event of this moment. `format` is as for printf. */
__attribute__((format(printf, 4, 5))) void journal_log(struct journal *journal,
                                                       enum log_level level, const char *kind,
                                                       const char *format, ...);

/* Copies the newest events, newest first, at most `max`. Returns the number copied. */
size_t journal_last(struct journal *journal, struct journal_event *out, size_t max);

#endif
