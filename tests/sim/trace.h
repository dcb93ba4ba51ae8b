/* The events of a run: a digest of all bytes, and the last events as text. */
#ifndef WEIR_SIM_TRACE_H
#define WEIR_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* KIND(id, word): which side did what. */
#define TRACE_KINDS(KIND)                                                                          \
    KIND(LOG, "weir says")                                                                         \
    KIND(ACCEPT, "weir accepts")                                                                   \
    KIND(CONNECT, "weir connects")                                                                 \
    KIND(WEIR_READ, "weir reads")                                                                  \
    KIND(WEIR_WRITE, "weir writes")                                                                \
    KIND(WEIR_SHUT, "weir shuts")                                                                  \
    KIND(WEIR_CLOSE, "weir closes")                                                                \
    KIND(DIAL, "dials")                                                                            \
    KIND(SEND, "sends")                                                                            \
    KIND(TAKE, "takes")                                                                            \
    KIND(SHUT, "shuts")                                                                            \
    KIND(CLOSE, "closes")                                                                          \
    KIND(RESET, "resets")                                                                          \
    KIND(REPLY, "is answered")                                                                     \
    KIND(FAULT, "fault")                                                                           \
    KIND(REDIS, "redis")

enum trace_kind {
#define KIND(id, word) TRACE_##id,
    TRACE_KINDS(KIND)
#undef KIND
        TRACE_COUNT
};

/* Writes every event to `to` at once; NULL: only the last events are kept. */
void trace_open(FILE *to);

/*
 * Forgets all events. Must also be called before the first event: trace_clear allocates the memory
 * of the events, for good.
 */
void trace_clear(void);

/*
 * Notes an event of connection `conn`. `data` is in the digest in full, and in the text up to a
 * length.
 */
void trace_note(enum trace_kind kind, unsigned conn, const char *data, size_t n);

/* Prints the last events, at most `most` of each connection. */
void trace_tell(FILE *to, unsigned most);

uint64_t trace_digest(void);

#endif
