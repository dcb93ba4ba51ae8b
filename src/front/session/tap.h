/*
 * A tap: a private lane of a cluster's client at one node, for the client's subscriptions there.
 *
 *   client.lane_user  main side and places: replies, in the client's order
 *   tap               confirmations and messages: whole frames, only between two replies
 *
 * A tap is a lane user with a private lane of its own, or without a lane for a while. A frame is
 * buffered until it is whole. A buffered frame counts as unread output. If a part of a reply was
 * sent to the client, the frame follows that reply.
 *
 * front/session/subscribe.h decides which commands go by taps, and to which nodes. subscriptions.c
 * receives each frame, and passes on the frames for the client. A tap has at most a few calls in
 * flight, and never together with calls of the main side or of places. A lost lane closes the
 * client, as Redis would. Lanes of taps count in max-lanes, but a client counts as one connection
 * however many taps it has. struct subscriptions owns the taps. All functions run on the worker's
 * thread.
 */
#ifndef WEIR_FRONT_TAP_H
#define WEIR_FRONT_TAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "front/client/client.h"
#include "front/route/lane_choice.h"
#include "front/route/replies.h"
#include "limit/command/command.h"

struct tap;

struct tap_ops {
    /*
     * Called for each whole frame. `call`: the oldest call in flight; NULL: no call was in flight
     * when the frame began.
     */
    void (*on_frame)(struct tap *tap, const struct call *call, struct slice frame);
    /* Called when a call was answered in full. */
    void (*on_answer)(struct tap *tap, const struct call *call, const struct glimpse *reply);
};

struct tap {
    struct lane_user lane_user;
    struct list in_taps;
    struct client *client;
    const struct tap_ops *ops;
    struct reply_source source;
    struct bytes frame; /* the pieces of the present frame received so far */
    /* why the lane could not be opened, as an error reply; heap; NULL: not refused */
    char *refusal;
    /*
     * true: serves SSUBSCRIBE; false: serves SUBSCRIBE and PSUBSCRIBE, on a lane of its own because
     * confirmations look alike
     */
    bool is_shard;
    bool is_name_set; /* the lane's name is the client's, if the client has a name */
    /* the tap has had a lane since tap_leave, and borrows a new lane in place of a kept one */
    bool wants_new;
    bool is_told; /* the client's present request was sent on this tap */
};

/* Returns a new tap without a lane. NULL: out of memory, and the client is closed. */
struct tap *tap_new(struct client *client, const struct tap_ops *ops, bool is_shard);

/* Returns the node of the tap's lane. NULL: no lane. */
struct nodes_row *tap_row(const struct tap *tap);

/* True if Redis has confirmed a subscription on the tap's lane that still holds. */
static inline bool tap_is_subscribed(const struct tap *tap)
{
    return tap->lane_user.lane != NULL && lane_is_subscribed(tap->lane_user.lane);
}

/*
 * Finds the tap's lane to this node. LANE_FOUND: the node has accepted the client's login, and
 * calls can be sent. LANE_NOT_YET: the client waits for a reason of waits.def. LANE_NONE:
 * tap_why_none tells the reason. LANE_UNPROVEN is never returned.
 */
__attribute__((warn_unused_result)) enum finding tap_find_lane(struct tap *tap,
                                                               struct nodes_row *row,
                                                               const struct command *command);

/* Returns why there is no lane, as lane_choice_lack does. */
enum err tap_lack(const struct tap *tap, struct nodes_row *row);

/*
 * tap_why_none returns why there is no lane, as an error reply. The reply is valid until
 * tap_forget_refusal, which the caller calls once the client has received the reply.
 */
struct slice tap_why_none(struct tap *tap, struct nodes_row *row);
void tap_forget_refusal(struct tap *tap, struct nodes_row *row);

/*
 * A request to send. `frames`: number of frames that confirm the request; with FLOW_UNSUBSCRIBE 0
 * means unknown.
 */
struct tap_request {
    struct slice bytes;
    uint64_t tag;
    uint32_t frames;
    uint32_t argument; /* call.argument, which `ops` read */
    uint8_t flow;
    uint8_t effect;
    uint8_t counted;
};

/* Sends a request on the tap's lane. False: out of memory, and the client is closed. */
__attribute__((warn_unused_result)) bool tap_send(struct tap *tap,
                                                  const struct tap_request *request);

/* Sends a frame to the client. The call may close the client. */
void tap_pass(struct tap *tap, struct slice frame);

/* Resumes the lane after a slow client has read its output. */
void tap_catch_up(struct tap *tap);

/* True if the tap can be freed: no calls, no subscriptions, and no frame kept for the client. */
bool tap_is_done(const struct tap *tap);

/* Gives up the tap's lane. A clean lane is kept for other clients; any other lane is closed. */
void tap_leave(struct tap *tap);

/*
 * Gives up the tap's lane as tap_leave does, and frees the tap. Not to be called from the lane's
 * callbacks, nor while replies keep a frame of the tap (tap_is_done).
 */
void tap_free(struct tap *tap);

#endif
