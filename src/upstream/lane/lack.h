/*
 * Permissions and features that weir lacks at a node, and the remedy for the operator. Clients are
 * served in spite of a lack.
 *
 * node->lacks says what weir lacks at a node, see node_lacks. Pure.
 */
#ifndef WEIR_UPSTREAM_LACK_H
#define WEIR_UPSTREAM_LACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/*
 * The user that weir needs: exactly the permissions of weir's scripts and of weir's own
 * connections.
 */
#define LACK_ACL_LINE                                                                                          \
    "ACL SETUSER weir on >PASSWORD -@all +info +command +ping +select ~limit:* resetchannels &limit:released " \
    "+script|load +evalsha +eval +subscribe +publish +time +del +unlink +exists +mget +set +pexpire +pttl "    \
    "+zadd +zcard +zcount +zscore +zrem +zrange +zrevrange +zrevrangebyscore +zremrangebyscore +zremrangebyrank"

/* The additional permissions at each node of a cluster. */
#define LACK_ACL_CLUSTER "+cluster|nodes +role +asking"

enum lack {
#define LACK(id, name, what, remedy) LACK_##id,
#include "upstream/lacks.def"
#undef LACK
    LACK_COUNT
};

/* Returns the name of a lack for programs: "user", "evalsha" ... */
const char *lack_name(enum lack lack);

/*
 * lack_what returns the missing thing and the consequence, as a text behind "upstream ADDRESS ".
 * lack_remedy returns the remedy.
 */
const char *lack_what(enum lack lack);
const char *lack_remedy(enum lack lack, bool is_cluster);

/*
 * True if the error reply says that weir may not run `command` (lower case). The command was
 * renamed, or an ACL forbids the command.
 */
bool lack_is_refused(struct slice reply, const char *command);

/*
 * True if an error reply, or a script's error, says that an ACL denies weir a key (lack_is_key) or
 * a channel (lack_is_channel).
 */
bool lack_is_key(struct slice error);
bool lack_is_channel(struct slice error);

/*
 * True if a script's error, with or without the first byte '-', says that the script may not run a
 * command.
 */
bool lack_is_in_script(struct slice error);

/*
 * True if the error aborted the script: Redis names the script's line in such errors. An error that
 * the script returns has no line.
 */
bool lack_ends_script(struct slice error);

#define LACK_ERROR_ROOM 768

/*
 * An error reply that names the lack and the remedy, in place of Redis' `reply`. `out` has
 * LACK_ERROR_ROOM bytes.
 */
struct slice lack_error(enum lack lack, bool is_cluster, struct slice reply, char *out);

#endif
