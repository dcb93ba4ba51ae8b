/*
 * A client at one node of a cluster: its requests there travel on the shared lane of its session
 * (front/cluster/spread.h).
 *
 * A place is made when the client first needs it, and stays until the client is closed or the node
 * has left the topology. Its proof says that the node has taken the client's own words; without it
 * nothing is sent there. A node that refuses these words, or lets no lane be opened, is no reason
 * to close the client: the command is answered with the refusal. A lane that is lost closes each
 * client that has calls on it. The worker's thread.
 */
#ifndef WEIR_FRONT_PLACE_H
#define WEIR_FRONT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/lane_choice.h"
#include "front/route/request.h"
#include "front/cluster/spread.h"

/*
 * The client's place at this node, made when first needed. NULL: out of memory, and the client is
 * closed.
 */
struct place *place_get(struct client *client, struct nodes_row *row);

/*
 * LANE_FOUND: *lane takes requests of the client now: it is ready, not congested, and the node has
 * taken the client's words. LANE_NOT_YET: the client waits for a reason of waits.def, and its link
 * will be woken. LANE_NONE: see place_lack. Never LANE_UNPROVEN. Without a command (NULL): for a
 * hop.
 */
__attribute__((warn_unused_result)) enum finding place_find_lane(struct place *place, const struct command *command,
                                                                 struct lane **lane);

/*
 * The request goes to the lane that was found for it; it has been charged. Out of memory the client
 * is closed.
 */
void place_send(struct place *place, struct lane *lane, const struct request *request);

/*
 * Why it has found none, as lane_choice_lack and lane_choice_why_none; place_forget_refusal: it has
 * been told.
 */
enum err place_lack(const struct place *place);
struct slice place_why_none(const struct place *place);
void place_forget_refusal(struct place *place);

/* A command is sent there: what it may have written is what WAIT speaks for. */
void place_note_write(struct place *place, const struct command *command);

/*
 * The client is closed, or calls of its are lost: what is in flight goes on without it
 * (front/client/remains.h).
 */
void place_leave(struct place *place);

/* Its row leaves the topology, or slots do its row: what its client has heard there counts on, for front/cluster/shard_reads.h. */
void place_keep_heard(const struct place *place);

/* Nothing is in flight there: it is gone. */
void place_free(struct place *place);

#endif
