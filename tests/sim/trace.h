/*
 * What has happened in a run: a digest of everything, byte for byte, and the last events as text.
 */
#ifndef WEIR_SIM_TRACE_H
#define WEIR_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* KIND(id, word): who did what. */
#define TRACE_KINDS(KIND)                                                                                              \
    KIND(LOG, "weir says")                                                                                             \
    KIND(ACCEPT, "weir accepts")                                                                                       \
    KIND(CONNECT, "weir connects")                                                                                     \
    KIND(WEIR_READ, "weir reads")                                                                                      \
    KIND(WEIR_WRITE, "weir writes")                                                                                    \
    KIND(WEIR_SHUT, "weir shuts")                                                                                      \
    KIND(WEIR_CLOSE, "weir closes")                                                                                    \
    KIND(DIAL, "dials")                                                                                                \
    KIND(SEND, "sends")                                                                                                \
    KIND(TAKE, "takes")                                                                                                \
    KIND(SHUT, "shuts")                                                                                                \
    KIND(CLOSE, "closes")                                                                                              \
    KIND(RESET, "resets")                                                                                              \
    KIND(REPLY, "is answered")                                                                                         \
    KIND(FAULT, "fault")                                                                                               \
    KIND(REDIS, "redis")

enum trace_kind {
#define KIND(id, word) TRACE_##id,
    TRACE_KINDS(KIND)
#undef KIND
        TRACE_COUNT
};

/* Write every event to `to` at once too; NULL: keep only the last ones. */
void trace_open(FILE *to);

/* Nothing has happened yet. Before the first event, too: it takes the memory for them, for good. */
void trace_clear(void);

/* Connection `conn`; `data` is part of the digest whole, and of the text as far as it goes. */
void trace_note(enum trace_kind kind, unsigned conn, const char *data, size_t n);

/* The last events, at most `most` of each connection. */
void trace_tell(FILE *to, unsigned most);

uint64_t trace_digest(void);

#endif
