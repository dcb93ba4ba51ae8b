/*
 * A spread: all places (front/route/place.h) of one client of a cluster, and the order of the
 * client's replies.
 *
 *     client ---- spread ---- place at node 1 ---- shared lane to node 1, calls of many clients
 *                        \--- place at node 2 ---- shared lane to node 2
 *                         \-- hop                  one single request (front/route/hop.h)
 *
 * A client's requests take one of two sides. The sides never have calls in flight at the same time.
 *   main    client.lane_user: requests that need a private lane (MULTI, WATCH, EVAL, BLPOP,
 *           SUBSCRIBE, large requests), and requests that change the session (HELLO, SELECT)
 *   places  one for each node: plain commands with keys of one slot, at all nodes at once
 * A request that changes the side waits until all calls of the client are answered
 * (client_wait_for_replies). Messages on a subscribed lane are passed on meanwhile.
 *
 * Order of execution, per key: requests for a slot go to one node, on one lane, in their order.
 * When the node of any slot changes (spread.version), the client's next request waits until all
 * requests in flight at places are answered. While a hop has not been sent in its order, weir takes
 * no newer request of the client: WAIT_AGAIN.
 *
 * Order of replies: each entry of spread.entries names a place and a number of consecutive replies.
 * Replies that come too early wait in the strand of their place. For front/route/replies.h all
 * places are one source. Each group of consecutive requests at places is one run of that source.
 * Replies to compounds and weir's own replies stand between the runs. Without compounds and replies
 * of weir, replies.h is idle.
 *
 *   requests   GET a   GET b   GET c   MGET d e   GET f
 *   entries    1       2 2             end        1    place, replies if several; `end` of a group
 *   replies    \__ run ____________/   compound   \ run
 *
 * The client owns its spread (extra.spread). All functions run on the worker's thread. On a single
 * server no spread exists. A spread knows nothing of struct client.
 */
#ifndef WEIR_FRONT_SPREAD_H
#define WEIR_FRONT_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "front/route/replies.h"
#include "front/route/unanswered.h"
#include "limit/command/keys.h"
#include "resp/scan.h"
#include "upstream/login/auth_lanes.h"
#include "upstream/node/nodes.h"
#include "upstream/node/topology.h"

struct client;

/* entries; an empty ring of at most this capacity is not freed (chosen) */
#define SPREAD_ENTRIES_KEPT 32
/* value of place.wrote_at: writes at the place may be lost, and a WAIT has reported the loss */
#define WROTE_TOLD 1U

/* The lane user of the client's requests on the shared lane to one node: front/route/place.h. */
struct place {
    struct lane_user lane_user;
    struct client *client;
    struct nodes_row *row;
    /* link in spread.retired; linked to itself while the node is in the topology */
    struct list in_retired;
    struct lease shared;          /* lease on the node's shared lane */
    struct early strand;          /* replies that cannot be passed on yet */
    struct reply_scan scan;       /* finds the end of the reply that weir is passing on */
    uint32_t n_owed;              /* replies that the client has not received yet */
    struct unanswered unanswered; /* requests in flight at the node */
    struct auth_proof proof;      /* confirmation that the node accepts the client's credentials */
    /* pending check of the client's credentials; question.login is NULL while no check runs */
    struct question question;
    /* reason why no lane was available, as text of Redis or weir; heap; NULL: no refusal */
    char *refusal;
    /* auth generation of the node when the place was made; see spread_renew_auth_generations */
    uint32_t auth_generation;
    uint32_t n_hops;             /* hops in flight at the node */
    const struct lane *hop_lane; /* lane of the n_hops hops; valid while n_hops > 0 */
    /* time of the client's last write at the node, a coverage_time; 0: none; or WROTE_TOLD */
    uint32_t wrote_at;
    uint64_t heard_ns; /* time of the node's last reply; kept for clients that read from replicas */
    /* a replica that refused a lane to the client is not used before this time */
    uint64_t avoided_until_ns;
    uint32_t doubts;  /* value of the node's reach.doubts at heard_ns */
    bool is_in_frame; /* a reply has been passed on in part */
    bool was_proven;  /* the node has accepted the client's credentials once */
    bool was_refused; /* the opening or the login of the awaited lane failed; reported once */
};

/* Consecutive replies of one place. */
struct reply_entry {
    struct place *place; /* NULL: the end of a group that is a run in replies.h */
    uint32_t n;
    uint32_t order; /* value of spread.order at the request of the first reply */
};

struct spread {
    /*
     * places by row of the topology that the worker has adopted; NULL: no place at the node; heap
     */
    struct place **places;
    size_t n_places; /* length of `places` */
    /* places with calls in flight at nodes that have left the topology */
    struct list retired;
    struct list hops;    /* struct hop, oldest first: all unfinished hops */
    struct list refused; /* struct refused (front/route/overtaken.h) */
    uint32_t n_hops;     /* length of `hops` */
    uint32_t n_held;     /* number of hops that are not yet sent in order: WAIT_AGAIN */
    /*
     * link in `hops` before which new hops go that replace a finished hop; NULL: no hop is replaced
     */
    struct list *heir_next;
    uint32_t heir_order; /* order of the replaced hop, which the new hops take over */
    /* ring of the order of replies, oldest first; heap; NULL: no ring yet */
    struct reply_entry *entries;
    uint32_t capacity;          /* capacity of the ring; a power of two */
    uint32_t head, tail;        /* oldest entry and end of the ring; wrap around */
    uint32_t order;             /* requests so far, including hops and compounds; wraps around */
    struct reply_source source; /* stands for all places in replies.h */
    bool is_open;               /* the newest group accepts more requests */
    bool is_run;                /* the open group is a run in replies.h; false: replies.h is idle */
    uint32_t version;           /* version of the slot map when the requests in flight were sent */
    /* the worker has adopted another topology since the requests in flight were sent */
    bool is_stale;
    struct key_filter several; /* keys of multi-key commands in flight */
    /*
     * node of the client's next request, set while the request waits for a lane; NULL: default node
     */
    struct nodes_row *target;
};

/* Returns a new spread, NULL if out of memory. The caller owns the spread. */
struct spread *spread_new(void);

/* Returns the number of calls in flight at places plus unfinished hops. 0 for NULL. */
uint32_t spread_in_flight(const struct spread *spread);

/*
 * True if a slot's node has changed since the requests in flight at places were sent. If the
 * function returns false, a row looked up earlier is still the row to which the slot's calls in
 * flight were sent (topology.h).
 */
static inline bool spread_is_outdated(const struct spread *spread, const struct nodes *nodes)
{
    return spread->is_stale || spread->version != slot_map_version(nodes->topology->slots);
}

/* Returns the client's place at the node of `row`, NULL if there is none. Safe on NULL. */
struct place *spread_place(const struct spread *spread, const struct nodes_row *row);

/* Returns the client's place at `node`, NULL if there is none. Safe on NULL. */
struct place *spread_place_at(const struct spread *spread, const struct node *node);

/*
 * Appends n requests at this place to the order of replies. Requests without a reply to the client
 * (CLIENT REPLY) are not counted. False if out of memory.
 */
__attribute__((warn_unused_result)) bool spread_expect_slowly(struct spread *spread,
                                                              struct replies *replies,
                                                              struct place *place, uint32_t n);

__attribute__((warn_unused_result)) static inline bool spread_expect(struct spread *spread,
                                                                     struct replies *replies,
                                                                     struct place *place,
                                                                     uint32_t n)
{
    if (!spread->is_open)
        return spread_expect_slowly(spread, replies, place, n);
    const uint32_t mask = spread->capacity - 1;
    if (spread->head == spread->tail) {
        if (spread->is_run || spread->capacity == 0 || !replies_are_idle(replies))
            return spread_expect_slowly(spread, replies, place, n);
        spread->entries[spread->tail++ & mask] = (struct reply_entry){place, n, spread->order};
    } else {
        struct reply_entry *newest = &spread->entries[(spread->tail - 1) & mask];
        if (newest->place != place)
            return spread_expect_slowly(spread, replies, place, n);
        newest->n += n;
    }
    place->n_owed += n;
    spread->order += n;
    return true;
}

/* Receives the reply bytes that the client gets next. */
struct spread_outlet {
    /* false if nothing more may be put; the call may have cleared the order of replies */
    bool (*put)(void *arg, const char *data, size_t n);
    void *arg;
};

/*
 * Takes the next bytes of the place's replies, and passes on the bytes that are next in order.
 * `is_whole`: the bytes end at the end of a reply. False if out of memory.
 */
__attribute__((warn_unused_result)) bool spread_take(struct spread *spread, struct replies *replies,
                                                     struct place *place, struct slice bytes,
                                                     bool is_whole,
                                                     const struct spread_outlet *outlet);

/*
 * Fast path of spread_take for bytes that end at the end of a reply. True if the client waits for
 * this reply alone. The reply is then marked as delivered, and the caller passes the bytes on.
 */
static inline bool spread_take_only(struct spread *spread, const struct replies *replies,
                                    struct place *place)
{
    if (place->n_owed != 1 || spread->tail - spread->head != 1 || place->strand.first != NULL ||
        spread->capacity > SPREAD_ENTRIES_KEPT || !replies_are_idle(replies))
        return false;
    spread->head++;
    place->n_owed = 0;
    if (place->is_in_frame) {
        place->scan = (struct reply_scan){0};
        place->is_in_frame = false;
    }
    return true;
}

/*
 * Called when a reply for which later replies waited has arrived. Passes on the bytes that are next
 * in order, as spread_take does.
 */
__attribute__((warn_unused_result)) bool spread_go_on(struct spread *spread,
                                                      struct replies *replies,
                                                      const struct spread_outlet *outlet);

/*
 * spread_may_pass: true if a part of the place's next reply has been passed on, and the rest may
 * bypass spread_take. spread_passed: the caller reports n bytes that have bypassed spread_take.
 */
bool spread_may_pass(const struct spread *spread, const struct replies *replies,
                     const struct place *place);
void spread_passed(struct place *place, size_t n);

/* Returns the value that spread.order had at the request of the place's next reply. */
uint32_t spread_order_of(const struct spread *spread, const struct place *place);

/* True if a reply of a place has been passed on in part. */
bool spread_is_in_frame(const struct spread *spread);

/* Forgets all expected replies. Called before replies_clear. */
void spread_forget(struct spread *spread, struct replies *replies);

/*
 * Called before a reply of another source. All requests at places so far become one run, which
 * takes no more requests. False if out of memory.
 */
__attribute__((warn_unused_result)) bool spread_end_run(struct spread *spread,
                                                        struct replies *replies);

/*
 * Called when no more requests are taken for now. replies.h may become idle once all requests are
 * answered.
 */
void spread_end_batch(struct spread *spread, struct replies *replies);

/*
 * Requests that each place with calls in flight is resumed when the place's last call is answered.
 */
void spread_want_idle(struct spread *spread);

/*
 * Called when the client's session has changed. `has_logged_in`: the client's user has changed as
 * well. Safe on NULL.
 */
void spread_end_session(struct spread *spread, bool has_logged_in);

/*
 * Sets the auth generation of every place to the current auth generation of the node, as on a new
 * connection. Safe on NULL.
 */
void spread_renew_auth_generations(struct spread *spread);

/* Cancels the wait for the node's check of the client's credentials. Safe while no check runs. */
void spread_end_question(struct place *place);

#endif
