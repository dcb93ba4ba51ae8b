/*
 * The names of a client's subscriptions that weir must remember: shard channels, and names
 * subscribed at all masters of a cluster.
 *
 *   A name of slot s is in the bucket s % CHANNELS_BUCKETS. struct subscriptions owns the names.
 *
 * Each name occurs at most once in each kind. All names together have at most CHANNELS_BYTES_MAX
 * bytes. A confirmation of Redis says which subscription has begun or ended. The module knows
 * nothing of struct client.
 */
#ifndef WEIR_FRONT_CHANNELS_H
#define WEIR_FRONT_CHANNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

#define CHANNELS_BUCKETS 64
#define CHANNELS_BYTES_MAX (8U << 20) /* chosen: about 100,000 names of 40 bytes */

enum channel_kind {
    CHANNEL_SHARD,   /* of SSUBSCRIBE */
    CHANNEL_EXACT,   /* of SUBSCRIBE, at all masters */
    CHANNEL_PATTERN, /* of PSUBSCRIBE, at all masters */
};

struct channel {
    struct list in_bucket;
    const void *tap; /* the tap with the subscription; NULL: none now */
    uint32_t len;
    uint16_t slot;
    uint8_t kind;  /* enum channel_kind */
    bool is_asked; /* an SSUBSCRIBE for the name is in flight at the slot's new node */
    char name[];
};

/* Must be zeroed before channels_init. */
struct channels {
    struct list buckets[CHANNELS_BUCKETS];
    uint64_t bytes;
    uint32_t n;         /* names of CHANNEL_SHARD */
    uint32_t n_orphans; /* names of CHANNEL_SHARD without a tap */
    uint32_t n_wide;    /* names of the other kinds */
};

void channels_init(struct channels *channels);
void channels_fini(struct channels *channels);

/* Returns the entry of `name`, NULL if there is none. */
struct channel *channels_find(const struct channels *channels, enum channel_kind kind,
                              struct slice name);

/* Adds a name, or moves it to this tap. False: out of memory, or more than CHANNELS_BYTES_MAX. */
__attribute__((warn_unused_result)) bool channels_add(struct channels *channels,
                                                      enum channel_kind kind, struct slice name,
                                                      const void *tap);

/* Moves a name to `tap`; with NULL the name has no tap. */
void channels_move(struct channels *channels, struct channel *channel, const void *tap);

void channels_drop(struct channels *channels, struct channel *channel);

/* Removes all names of this kind. */
void channels_drop_all(struct channels *channels, enum channel_kind kind);

/* Removes the tap from its shard channels, which become orphans. */
void channels_orphan(struct channels *channels, const void *tap);

/*
 * Returns the next name of this kind after `channel`; after NULL the first. Returns NULL after the
 * last name.
 */
struct channel *channels_next(const struct channels *channels, enum channel_kind kind,
                              const struct channel *channel);

static inline struct slice channel_name(const struct channel *channel)
{
    return slice_of(channel->name, channel->len);
}

/* ---- confirmations ---- */

/*
 * A confirmation: the reply to a SUBSCRIBE or UNSUBSCRIBE command. The reply is an array or a push
 * of a word, a channel and the number of remaining subscriptions.
 *
 *     *3  $9 subscribe  $4 news  :1        >3  $12 sunsubscribe  _  :0
 */
struct confirmation {
    struct slice word;
    struct slice channel; /* name of the channel; empty for nil */
    bool has_channel;     /* false for nil: the client had no subscription */
    size_t count_at;      /* offset of the last line, which holds the number of subscriptions */
    int64_t count;
};

/* Reads a whole frame. False if the frame is no confirmation. */
__attribute__((warn_unused_result)) bool confirmation_read(struct slice frame,
                                                           struct confirmation *out);

#endif
