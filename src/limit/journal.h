/*
 * The last 256 events that an operator should know of, for LIMIT LOG: reloads, upstreams lost and found, tables full.
 *
 * Any thread; a mutex inside, held while an event is copied. Memory is fixed, about 80 KB. For rare events, not for
 * every refusal: a flood would overwrite the others.
 */
#ifndef WEIR_LIMIT_JOURNAL_H
#define WEIR_LIMIT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#define JOURNAL_EVENTS 256
#define JOURNAL_KIND_MAX 31
#define JOURNAL_TEXT_MAX 255

struct journal;

struct journal_event {
    uint64_t id; /* 0, 1, 2 ...; missing ones have been overwritten */
    uint64_t unix_ms;
    char kind[JOURNAL_KIND_MAX + 1];
    char text[JOURNAL_TEXT_MAX + 1];
};

/* Never fails: out of memory ends the process. */
struct journal *journal_new(void);
void journal_free(struct journal *journal);

/* Add an event that happened at unix_ms: `kind` is one word, `format` printf's. Longer texts are cut. */
__attribute__((format(printf, 4, 5))) void journal_add(struct journal *journal, uint64_t unix_ms, const char *kind,
                                                       const char *format, ...);

/* Copy the newest events, newest first, at most `max`; returns how many. */
size_t journal_last(struct journal *journal, struct journal_event *out, size_t max);

#endif
