/*
 * The last 256 events an operator should know of, for LIMIT LOG: reloads, upstreams lost and found, tables full.
 *
 * Any thread; a mutex inside, held while an event is copied. Memory is fixed, about 80 KB. For what happens now and then,
 * not for every refusal: a flood of events would drive the others out.
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
    uint64_t id; /* 0, 1, 2 ...: a gap is what has been overwritten */
    uint64_t unix_ms;
    char kind[JOURNAL_KIND_MAX + 1];
    char text[JOURNAL_TEXT_MAX + 1];
};

/* Never fails: out of memory ends the process. */
struct journal *journal_new(void);
void journal_free(struct journal *journal);

/* What happened at unix_ms: a short word for it, and printf's format for the rest. What is too long is cut. */
__attribute__((format(printf, 4, 5))) void journal_add(struct journal *journal, uint64_t unix_ms, const char *kind,
                                                       const char *format, ...);

/* The newest events, newest first, at most `max`; returns how many. */
size_t journal_last(struct journal *journal, struct journal_event *out, size_t max);

#endif
