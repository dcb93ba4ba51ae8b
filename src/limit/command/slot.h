/*
 * The slot of a key in a Redis Cluster, and requests with keys in several slots. Pure; any thread.
 *
 * A slot is CRC16 (XMODEM) of the key, or of its tag, modulo 16384. The tag is what stands between
 * the first `{` and the first `}` behind it, if that is not empty. Source: the Redis Cluster
 * specification, "Key distribution model" and "Hash tags".
 */
#ifndef WEIR_LIMIT_SLOT_H
#define WEIR_LIMIT_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command_row.h"
#include "resp/build.h"

#define SLOT_COUNT 16384

uint16_t slot_of(struct slice key);

/*
 * ---- splits ----
 *
 * A request with keys in several slots, as one request for each slot, or for each key.
 *
 *   MGET a b c d a        a, d in slot 15495; b in 3300; c in 7365
 *   parts                 MGET a d a | MGET b | MGET c     in the order in which slots come first
 *   keys                  part and index in the part, for each key in the request's order
 *
 * Of MSET a key has its value beside it. A key that is named twice is in its part twice, in order.
 * The request's bytes must stay as long as the split is used; slot_split_fini frees the rest.
 */

struct slot_split_key {
    uint32_t off; /* of its header in the request: "$1\r\na\r\n", and its value's behind it */
    uint32_t len; /* of all that */
    uint32_t key_off, key_len;
    uint32_t part;
    uint32_t index; /* in its part */
    uint32_t next;  /* the next key of its part; SLOT_SPLIT_END: there is none */
};

struct slot_split_part {
    uint32_t first, last; /* keys */
    uint32_t n_keys;
    uint16_t slot;
};

#define SLOT_SPLIT_END UINT32_MAX

struct slot_split {
    struct slice request;
    struct slice name; /* with its header: "$4\r\nmget\r\n" */
    struct slot_split_key *keys;
    struct slot_split_part *parts;
    uint32_t n_keys, n_parts;
    uint8_t args_per_key; /* 1, or 2: a key and its value */
};

/* How many arguments belong to a key, itself included. */
uint32_t slot_split_args(const struct command *command);

/* True if a command of FANOUT_SLOTS or FANOUT_WRITTEN with so many arguments has keys, and each key what belongs to it. */
bool slot_split_fits(const struct command *command, uint32_t argc);

/* `request` is whole, and fits. False: out of memory, and nothing is to be freed. */
__attribute__((warn_unused_result)) bool slot_split_init(struct slot_split *split, const struct command *command,
                                                         struct slice request, uint32_t argc);
void slot_split_fini(struct slot_split *split);

/* The request of part `part`, or of key `key` alone. */
void slot_split_put_part(const struct slot_split *split, uint32_t part, struct build *out);
void slot_split_put_key(const struct slot_split *split, uint32_t key, struct build *out);

/* True if the key is named again behind `key`: what MSET gives it here is not to be seen. */
bool slot_split_is_overwritten(const struct slot_split *split, uint32_t key);

#endif
