/*
 * What holds for the lanes of a client, as rider_ops wants it: in whose counts they are, and which may carry its bytes.
 */
#ifndef WEIR_FRONT_LANE_CLAIM_H
#define WEIR_FRONT_LANE_CLAIM_H

#include "upstream/lane/lane.h"

struct client;

/* An address stands for all who come from it, whoever they say they are. */
struct room_share lane_claim_share(const struct rider *rider);
struct room_share lane_claim_share_of(const struct client *client);

/*
 * A lane that carries its requests is its own, or one for its session, or a shared one for HELLO and SELECT to be
 * judged.
 */
void lane_claim_audit(const struct rider *rider, const struct lane *lane);

#endif
