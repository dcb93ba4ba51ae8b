/*
 * The slot of a key in a Redis Cluster, and requests with keys in several slots. Pure; any thread.
 *
 * A slot is CRC16 (XMODEM) of the key, or of its tag, modulo 16384. The tag is the text between the
 * first `{` and the first `}` after it, if not empty. Source: the Redis Cluster specification, "Key
 * distribution model" and "Hash tags".
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
 * Splits a request with keys in several slots into one request for each slot, or for each key.
 *
 *   MGET a b c d a        a, d in slot 15495; b in 3300; c in 7365
 *   parts                 MGET a d a | MGET b | MGET c     in the order of the first key of each
 *   keys                  part and index in the part, for each key in the request's order
 *
 * In MSET each key is followed by its value. A repeated key is repeated in its part, in order. The
 * bytes of the request must stay valid while the split is used. slot_split_fini frees the memory of
 * the split.
 */

struct slot_split_key {
    uint32_t off; /* offset of the key's header in the request: "$1\r\na\r\n"; the value follows */
    uint32_t len; /* length of the key and its value, with headers */
    uint32_t key_off, key_len;
    uint32_t part;
    uint32_t index; /* index of the key in the part */
    uint32_t next;  /* next key of the part; SLOT_SPLIT_END: none */
};

struct slot_split_part {
    uint32_t first, last; /* indexes of keys */
    uint32_t n_keys;
    uint16_t slot;
};

#define SLOT_SPLIT_END UINT32_MAX

struct slot_split {
    struct slice request;
    struct slice name; /* the command's name, with the header: "$4\r\nmget\r\n" */
    struct slot_split_key *keys;
    struct slot_split_part *parts;
    uint32_t n_keys, n_parts;
    uint8_t args_per_key; /* 1; or 2: a key and its value */
};

/* Number of arguments for each key, the key included. */
uint32_t slot_split_args(const struct command *command);

/*
 * True if a command of FANOUT_SLOTS or FANOUT_WRITTEN with argc arguments has keys, each with its
 * value if it needs one.
 */
bool slot_split_fits(const struct command *command, uint32_t argc);

/* `request` is whole and satisfies slot_split_fits. False: out of memory; nothing to free. */
__attribute__((warn_unused_result)) bool slot_split_init(struct slot_split *split,
                                                         const struct command *command,
                                                         struct slice request, uint32_t argc);
void slot_split_fini(struct slot_split *split);

/* Writes the request of part `part`. */
void slot_split_put_part(const struct slot_split *split, uint32_t part, struct build *out);
/* Writes a request for key `key` alone. */
void slot_split_put_key(const struct slot_split *split, uint32_t key, struct build *out);

/*
 * True if the request names the same key again later. The value that MSET gives to the earlier key
 * is never visible.
 */
bool slot_split_is_overwritten(const struct slot_split *split, uint32_t key);

#endif
