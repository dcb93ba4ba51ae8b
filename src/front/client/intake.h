/*
 * Request bytes that have arrived and are not yet taken.
 *
 * In an intake taken <= scanned <= filled <= capacity. One may point into memory that is used up before the next read;
 * what is left of it then is kept in memory of its own.
 */
#ifndef WEIR_FRONT_INTAKE_H
#define WEIR_FRONT_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "resp/scan.h"

/* All the request bytes that are kept for one client: a partial request and one read. */
#define INTAKE_READ 69632 /* one read: a request with a value of 64 KiB comes whole */
#define INTAKE_MAX (2 * INTAKE_READ)
#define INTAKE_MIN_READ 4096 /* less room than this is not worth a read */

struct intake {
    struct request_scan scan;
    uint32_t taken, scanned, filled, capacity; /* taken <= scanned <= filled <= capacity */
    bool has_frame;                            /* [taken, scanned) is a whole request that could not go yet */
    uint16_t waits;                            /* set of enum client_wait: what the next one waits for since held_ns */
    uint64_t held_ns;                          /* since when the next one cannot go; 0: it can, as far as is known */
    char *data;
};

static inline bool intake_is_empty(const struct intake *in)
{
    return in->taken == in->filled;
}

/* A copy of what is left, on the heap; NULL: out of memory. */
struct intake *intake_keep(const struct intake *local);

/* Move what is left to the front. */
void intake_compact(struct intake *in);

/* Make room for a read, as far as INTAKE_MAX and memory allow. Returns the room. */
size_t intake_make_room(struct intake *in);

/* For one from intake_keep. Returns how many bytes went back to the allocator. */
size_t intake_free(struct intake *in);

#endif
