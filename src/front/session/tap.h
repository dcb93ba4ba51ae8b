/*
 * A private lane of a cluster's client at one node, by which it hears what it has subscribed to
 * there.
 *
 *   client.rider  main, and places: replies, in the client's order
 *   tap           confirmations and messages: whole frames, beside the replies, never within one
 *
 * A tap is a rider of its own, and owns its lane while that is there. A frame is held until it has
 * come whole, and counts as unread output meanwhile. If a part of a reply has been sent to the
 * client, the frame follows that reply.
 *
 * Which commands go by taps, and at which nodes, is front/session/subscribe.h: it hears each frame, and
 * passes on what the client is to hear. A tap has at most a few calls in flight, and none of them
 * together with calls of main's or of places. A lane that is lost closes the client, as Redis
 * would. Lanes count in max-lanes; the client stays one connection. The worker's thread; owner:
 * struct subscriptions.
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
    /* A whole frame has come. `call`: the oldest in flight; NULL: there was none when it began. */
    void (*on_frame)(struct tap *tap, const struct call *call, struct slice frame);
    /* A call has been answered in full. */
    void (*on_answer)(struct tap *tap, const struct call *call, const struct glimpse *reply);
};

struct tap {
    struct rider rider;
    struct list in_taps;
    struct client *client;
    const struct tap_ops *ops;
    struct reply_source source;
    struct bytes frame; /* that is coming, as far as it has come in pieces */
    char *refusal;      /* why its lane could not be opened, as an error reply; heap; NULL: that has not happened */
    bool is_shard;      /* for SSUBSCRIBE. SUBSCRIBE and PSUBSCRIBE have others: their confirmations look alike */
    bool is_dressed;    /* its lane bears the client's name, if that has one */
    bool wants_new;     /* it has had a lane since it was left last: the next one is not a kept one */
    bool is_told;       /* the request that is being carried out has been sent here */
};

/* NULL: out of memory, and the client is closed. */
struct tap *tap_new(struct client *client, const struct tap_ops *ops, bool is_shard);

/* The node that its lane leads to. NULL: it has no lane. */
struct nodes_row *tap_row(const struct tap *tap);

/* True if Redis has confirmed a subscription there that still holds. */
static inline bool tap_is_subscribed(const struct tap *tap)
{
    return tap->rider.lane != NULL && lane_is_subscribed(tap->rider.lane);
}

/*
 * LANE_FOUND: its lane leads to this node, the node has taken the client's words, and calls can be
 * sent. LANE_NOT_YET: the client waits for a reason of waits.def. LANE_NONE: tap_why_none says
 * why. Never LANE_UNPROVEN.
 */
__attribute__((warn_unused_result)) enum finding tap_find_lane(struct tap *tap, struct nodes_row *row,
                                                               const struct command *command);

/* Why there is none, as lane_choice_lack. */
enum err tap_lack(const struct tap *tap, struct nodes_row *row);

/* As an error reply; good until tap_forget_refusal, which is for when it has been told. */
struct slice tap_why_none(struct tap *tap, struct nodes_row *row);
void tap_forget_refusal(struct tap *tap, struct nodes_row *row);

/* What is sent: `frames` frames confirm it, or none says how many (0, of FLOW_UNSUBSCRIBE). */
struct tap_request {
    struct slice bytes;
    uint64_t tag;
    uint32_t frames;
    uint32_t argument; /* call.argument, for ops */
    uint8_t flow;
    uint8_t effect;
    uint8_t counted;
};

/* False: out of memory, the client is closed. */
__attribute__((warn_unused_result)) bool tap_send(struct tap *tap, const struct tap_request *request);

/* The client hears this frame. It may be closed. */
void tap_pass(struct tap *tap, struct slice frame);

/* The client has caught up with its output. */
void tap_catch_up(struct tap *tap);

/*
 * True if nothing is left of it: neither calls nor subscriptions, nor a frame that the client has
 * still to hear.
 */
bool tap_is_done(const struct tap *tap);

/* It leaves its lane: kept for others if it is done, else closed. */
void tap_leave(struct tap *tap);

/*
 * The same, and it is gone. Not while its lane is calling it, nor while replies hold a frame of
 * its (tap_is_done).
 */
void tap_free(struct tap *tap);

#endif
