/*
 * A place: one client at one node of a cluster. The client's requests to that node travel on the
 * shared lane of the client's session (front/cluster/spread.h).
 *
 * A place is made when the client first needs the node. The place stays until the client is closed
 * or the node leaves the topology. The proof of a place says that the node has accepted the
 * client's login. Without a proof nothing is sent to the node.
 *
 * Failures:
 * - The node refuses the login, or no lane can be opened: the command is answered with the refusal.
 *   The client stays open.
 * - A lane is lost: each client with calls on the lane is closed.
 *
 * Thread: the worker's.
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
 * Returns the client's place at this node, and makes one if there is none. NULL: out of memory, and
 * the client is closed.
 */
struct place *place_get(struct client *client, struct nodes_row *row);

/*
 * Finds the lane for the client's next request. `command` is NULL for a hop.
 * - LANE_FOUND: *lane takes requests now. The lane is ready and not congested, and the node has
 *   accepted the client's login.
 * - LANE_NOT_YET: the client waits for a reason of waits.def. The client's link will be woken.
 * - LANE_NONE: place_lack tells the reason.
 * - LANE_UNPROVEN is never returned.
 */
__attribute__((warn_unused_result)) enum finding place_find_lane(struct place *place,
                                                                 const struct command *command,
                                                                 struct lane **lane);

/*
 * Sends a charged request on the lane that place_find_lane found. The client is closed when memory
 * is out.
 */
void place_send(struct place *place, struct lane *lane, const struct request *request);

/*
 * Why place_find_lane found no lane, as lane_choice_lack and lane_choice_why_none.
 * place_forget_refusal clears the reason after the client was told.
 */
enum err place_lack(const struct place *place);
struct slice place_why_none(const struct place *place);
void place_forget_refusal(struct place *place);

/* Records a command at this place, if the command may write. WAIT covers these writes. */
void place_note_write(struct place *place, const struct command *command);

/*
 * The client is closed, or calls of the client are lost. Calls in flight continue without the
 * client (front/client/remains.h).
 */
void place_leave(struct place *place);

/*
 * Copies the time of the place's last answer to the client's read side
 * (front/cluster/shard_reads.h). Called when the row leaves the topology, or when slots leave the
 * row.
 */
void place_keep_heard(const struct place *place);

/* Frees the place. No call may be in flight at the place. */
void place_free(struct place *place);

#endif
