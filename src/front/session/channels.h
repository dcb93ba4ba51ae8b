/*
 * The names that a client has subscribed to and weir must know again: each channel of shards, and
 * what is subscribed to at all masters of a cluster.
 *
 *   place in the list     slot % CHANNELS_BUCKETS; owner: struct subscriptions
 *
 * A name is there once for each kind. Bounded by CHANNELS_BYTES_MAX of names. Knows of no client.
 */
#ifndef WEIR_FRONT_CHANNELS_H
#define WEIR_FRONT_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define CHANNELS_BUCKETS 64
#define CHANNELS_BYTES_MAX (8U << 20) /* chosen: as many as 100,000 names of 40 bytes */

enum channel_kind {
    CHANNEL_SHARD,   /* of SSUBSCRIBE */
    CHANNEL_EXACT,   /* of SUBSCRIBE, at all masters */
    CHANNEL_PATTERN, /* of PSUBSCRIBE, at all masters */
};

struct channel {
    struct list in_bucket;
    const void *tap; /* by which it is subscribed; NULL: by none now */
    uint32_t len;
    uint16_t slot;
    uint8_t kind;  /* enum channel_kind */
    bool is_asked; /* it is being subscribed to again */
    char name[];
};

/* Zeroed: channels_init is to follow. */
struct channels {
    struct list buckets[CHANNELS_BUCKETS];
    uint64_t bytes;
    uint32_t n;         /* of CHANNEL_SHARD */
    uint32_t n_orphans; /* of those, the ones without a tap */
    uint32_t n_wide;    /* of the other kinds */
};

void channels_init(struct channels *channels);
void channels_fini(struct channels *channels);

/* NULL: it is not there. */
struct channel *channels_find(const struct channels *channels, enum channel_kind kind, struct slice name);

/* It is there from now on, by this tap. False: out of memory, or there is no room. */
__attribute__((warn_unused_result)) bool channels_add(struct channels *channels, enum channel_kind kind,
                                                      struct slice name, const void *tap);

/* From now on by this tap, or by none. */
void channels_move(struct channels *channels, struct channel *channel, const void *tap);

void channels_drop(struct channels *channels, struct channel *channel);

/* All of this kind. */
void channels_drop_all(struct channels *channels, enum channel_kind kind);

/* Those of a tap have none now. */
void channels_orphan(struct channels *channels, const void *tap);

/* The next of this kind behind `channel`, NULL: the first. NULL: there is no more. */
struct channel *channels_next(const struct channels *channels, enum channel_kind kind, const struct channel *channel);

static inline struct slice channel_name(const struct channel *channel)
{
    return slice_of(channel->name, channel->len);
}

#endif
