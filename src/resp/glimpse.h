/*
 * The first and the last bytes of a frame that arrives in pieces: enough to tell an error from success, a pub/sub
 * message from a confirmation, and how many subscriptions are left, without buffering the frame.
 */
#ifndef WEIR_RESP_GLIMPSE_H
#define WEIR_RESP_GLIMPSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

#define GLIMPSE_BYTES 32 /* "*3\r\n$12\r\npunsubscribe\r\n" are 23; "\r\n:18446744073709551615\r\n" are 25 */

struct glimpse {
    uint8_t n_head;
    uint8_t n_tail;
    char head[GLIMPSE_BYTES];
    char tail[GLIMPSE_BYTES];
};

static inline void glimpse_reset(struct glimpse *glimpse)
{
    glimpse->n_head = 0;
    glimpse->n_tail = 0;
}

/* Add the next piece of the frame. */
void glimpse_feed(struct glimpse *glimpse, const char *data, size_t n);

/* The type byte of the frame; 0 before the first piece. */
static inline char glimpse_type(const struct glimpse *glimpse)
{
    return glimpse->n_head > 0 ? glimpse->head[0] : '\0';
}

/* Does the frame begin with this text? */
bool glimpse_starts(const struct glimpse *glimpse, struct slice text);

/* Is `text` the whole frame? It must be shorter than GLIMPSE_BYTES. */
static inline bool glimpse_is(const struct glimpse *glimpse, struct slice text)
{
    return glimpse->n_head == text.len && memcmp(glimpse->head, text.at, text.len) == 0;
}

/* The first element of an array or push, if it is a bulk that lies wholly in `head`; else empty. */
struct slice glimpse_first_bulk(const struct glimpse *glimpse);

/* The integer that the frame ends with (":3\r\n"), or -1 if it ends otherwise. */
int64_t glimpse_last_integer(const struct glimpse *glimpse);

#endif
