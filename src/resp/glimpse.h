/*
 * The first and the last bytes of a frame that arrives in pieces and is not buffered. The first
 * bytes tell an error from success, and a pub/sub message from a confirmation. The last bytes hold
 * the number of remaining subscriptions.
 */
#ifndef WEIR_RESP_GLIMPSE_H
#define WEIR_RESP_GLIMPSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

/* "*3\r\n$12\r\npunsubscribe\r\n" has 23 bytes; "\r\n:18446744073709551615\r\n" has 25 */
#define GLIMPSE_BYTES 32

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

/* Adds the next piece of the frame. */
void glimpse_feed(struct glimpse *glimpse, const char *data, size_t n);

/* Returns the type byte of the frame, 0 before the first piece. */
static inline char glimpse_type(const struct glimpse *glimpse)
{
    return glimpse->n_head > 0 ? glimpse->head[0] : '\0';
}

/* True if the frame begins with this text. */
bool glimpse_starts(const struct glimpse *glimpse, struct slice text);

/* True if `text` is the whole frame. `text` must be shorter than GLIMPSE_BYTES. */
static inline bool glimpse_is(const struct glimpse *glimpse, struct slice text)
{
    return glimpse->n_head == text.len && memcmp(glimpse->head, text.at, text.len) == 0;
}

/*
 * Returns the first element of an array or push, if that element is a bulk within `head`. Returns
 * an empty slice otherwise.
 */
struct slice glimpse_first_bulk(const struct glimpse *glimpse);

/* Returns the integer at the end of the frame (":3\r\n"), -1 if there is none. */
int64_t glimpse_last_integer(const struct glimpse *glimpse);

#endif
