/*
 * What weir does not get of a node, and what the operator does about it. Clients are served all the same.
 *
 * Which of these a node has is in node->lacks, see node_lacks. Pure.
 */
#ifndef WEIR_UPSTREAM_LACK_H
#define WEIR_UPSTREAM_LACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The user that weir needs: what its scripts and its own connections may do, and no more. */
#define LACK_ACL_LINE                                                                                                  \
    "ACL SETUSER weir on >PASSWORD -@all +info +command +ping +select ~limit:* resetchannels &limit:released "         \
    "+script|load +evalsha +eval +subscribe +publish +time +del +unlink +exists +mget +set +pexpire +pttl "            \
    "+zadd +zcard +zcount +zscore +zrem +zrange +zrevrange +zrevrangebyscore +zremrangebyscore +zremrangebyrank"

/* What it needs besides at each node of a cluster. */
#define LACK_ACL_CLUSTER "+cluster|nodes +role +asking"

enum lack {
#define LACK(id, name, what, remedy) LACK_##id,
#include "upstream/lacks.def"
#undef LACK
    LACK_COUNT
};

/* "user", "evalsha" ...; for programs. */
const char *lack_name(enum lack lack);

/* What is missing and what follows, behind "upstream ADDRESS "; and what the operator does about it. */
const char *lack_what(enum lack lack);
const char *lack_remedy(enum lack lack, bool is_cluster);

/*
 * True if an error reply says that Redis does not let weir run this command (lower case): it has been renamed, or an
 * ACL forbids it.
 */
bool lack_is_refused(struct slice reply, const char *command);

/* True if an error reply, or an error of a script, says that an ACL keeps a key, or a channel, from weir. */
bool lack_is_key(struct slice error);
bool lack_is_channel(struct slice error);

/* True if an error of a script, with its first byte '-' or without, says that Redis did not let it run a command. */
bool lack_is_in_script(struct slice error);

/* True if the error ended the script: Redis says at which line. One that the script itself returns has none. */
bool lack_ends_script(struct slice error);

#define LACK_ERROR_ROOM 768

/* An error reply that names it, with the remedy, in place of Redis' own `reply`. `out` has LACK_ERROR_ROOM bytes. */
struct slice lack_error(enum lack lack, bool is_cluster, struct slice reply, char *out);

#endif
