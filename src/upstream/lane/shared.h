/*
 * The shared lane of a session: found, opened, and replaced by another when it takes its time.
 *
 * A lane whose calls wait for long, or that is full of one huge reply, is retired: it answers what it has, and new
 * calls go to another, opened beforehand if possible (a spare one). The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_SHARED_H
#define WEIR_UPSTREAM_SHARED_H

#include "upstream/lane/lanes.h"

/*
 * The shared lane for a session, opened for `rider` if there is none: ready, or to be waited for; NULL when the
 * node is away, there are too many lanes, or memory is out.
 */
struct lane *shared_get(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/*
 * A huge reply has come on this lane, and whoever had calls behind it waits until it has passed. For a while the first
 * reads of clients of whom nothing is known have a lane of their own, where only their like is behind them.
 */
void shared_be_wary(struct lane *lane);

/* Is it so now? */
static inline bool shared_is_wary(const struct lanes *lanes)
{
    return lanes_loop(lanes)->now_ns < lanes->wary_until_ns;
}

/* The lane for such a read, if one is ready; else one is opened, if there is room. NULL: the session's own must do. */
struct lane *shared_get_apart(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/* The same as shared_get, if there is one; opens none. */
struct lane *shared_find(struct lanes *lanes, const struct lane_key *key);

/* A new one, that counts for `rider`, or for nobody (NULL). NULL as shared_get. */
struct lane *shared_open(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/* Has the lane been silent for long, though calls wait for answers? Then new ones had better go elsewhere. */
bool shared_is_sluggish(const struct lane *lane);

/* No new calls for this lane. False: it must go on, as none like it could be opened. */
bool shared_retire(struct lane *lane);

/* A retired lane has answered everything: it is spare. */
void shared_end_retirement(struct lane *lane);

/* One that was retired, or is spare, takes new calls after all. False: there is none of this session. */
bool shared_bring_back(struct lanes *lanes, const struct lane_key *key);

/* Nobody remembers this lane any more. */
void shared_note_unleased(const struct lane *lane);

#endif
