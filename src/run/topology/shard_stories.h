/*
 * Tells failovers of the shards of a cluster, each in a line of its own (failover_story.h).
 *
 * A story begins when the connection to a master is lost, and is bound to a slot that the master serves: which node
 * serves
 * that slot afterwards is the end of it. A slot that is moved from a master that is there is no failover. What is
 * counted meanwhile is of all shards. Main thread; no clock, no I/O.
 */
#ifndef WEIR_RUN_SHARD_STORIES_H
#define WEIR_RUN_SHARD_STORIES_H

#include <stdbool.h>
#include <stdint.h>

#include "run/topology/failover_story.h"
#include "run/topology/members.h"
#include "upstream/node/topology.h"

#define SHARD_STORIES 16 /* at a time (chosen): of more shards that are lost together the first ones are told of */

struct shard_story {
    struct failover_story story;
    uint16_t slot;
};

/* Zeroed: nothing has been seen. */
struct shard_stories {
    struct shard_story all[SHARD_STORIES];
    struct fates rest; /* of the last shard_stories_tell: what is counted in a story begins here */
};

/* Members have been heard, or lost. `rows`: the members of the topology's rows, each of which may be NULL. */
void shard_stories_follow(struct shard_stories *stories, const struct topology *topology, struct member *const *rows,
                          uint64_t now_ns);

/* For a moment later, again and again: `tell` hears each story that has been over for `after_ns`. */
void shard_stories_tell(struct shard_stories *stories, const struct fates *now, uint64_t now_ns, uint64_t after_ns,
                        void (*tell)(void *arg, const char *line), void *arg);

#endif
