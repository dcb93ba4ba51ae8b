/*
 * A hop: one request that is sent alone, and sent again while a cluster answers that the request
 * was not run.
 *
 *   MOVED        sent to the slot's new node; for an unknown address the topology is polled and
 *                awaited
 *   ASK          sent to the node of the ASK, behind ASKING, in one append
 *   TRYAGAIN     sent again after 1, 2, 4 .. 50 ms; earlier redirects are forgotten
 *   CLUSTERDOWN, LOADING, READONLY, MASTERDOWN   the topology is polled; sent again after
 *                10 .. 100 ms
 *
 * A hop begins in two ways: as a call that came back from a place (front/route/taken.h), or as a
 * part of a compound (front/cluster/compound_parts.h).
 *
 * A refusal is handled once all calls in flight behind the request on its lane are answered. If a
 * later request has overtaken the refused one (front/route/overtaken.h), the refusal is the reply.
 * A redirect then becomes `-UPSTREAM moved`.
 *
 * A train is a hop of several requests to one node. The keys of each request of a train are in one
 * slot. A train is sent once, and its requests are answered one by one. A request of the train that
 * was not run continues as a hop of its own.
 *
 * Bounds:
 * - MOVED and ASK: at most HOPS_MAX sendings and at most redirect-timeout, then `-UPSTREAM moved`.
 * - TRYAGAIN: at most redirect-timeout, then the reply is passed on.
 * - The other refusals: at most failover-wait, then the reply is passed on.
 * - If a redirect leads to a node that is away, the hop waits for the node for at most
 *   failover-wait. redirect-timeout restarts afterwards.
 * - A MOVED or ASK for another slot than the request's own is forged or wrong: `-UPSTREAM moved`.
 * - weir dials no address outside the topology.
 *
 * Invariants:
 * - A request is never sent again after a lost lane. A lost lane closes the client.
 * - Hops of one slot are sent in their order, one after the other. No hop goes to another node
 *   while older calls of its slot are in flight.
 * - While a hop waits, the client's newer requests wait: WAIT_AGAIN.
 *
 * Owner: see hop_ops. Thread: the worker's.
 */
#ifndef WEIR_FRONT_HOP_H
#define WEIR_FRONT_HOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "front/client/client.h"
#include "front/route/overtaken.h"
#include "front/route/place.h"
#include "net/alarms.h"
#include "upstream/node/not_run.h"

#define HOPS_MAX 5

struct hop;

/*
 * A hop ends with one call of on_reply (a train: on_replies) or on_lost, never from within
 * hop_start. The hop is over before that call. The hop's memory belongs to the owner, which may
 * start the hop again.
 */
struct hop_ops {
    /* The whole reply to the request. The slice is valid during this call. */
    void (*on_reply)(struct hop *hop, struct slice reply);
    /*
     * The reply to `request` was TRYAGAIN. True: the owner continues without the hop; the hop is
     * over, and no other function is called. Hops that the owner starts in this call take the order
     * of this hop among the hops of the slot. NULL: the hop always sends again.
     */
    bool (*on_try_again)(struct hop *hop, struct slice request);
    /* No reply will come: the client is closed. The hop calls nothing afterwards. */
    void (*on_lost)(struct hop *hop);
    /*
     * Trains only: `reply` says that the train's next request was not run. `row` is the row of
     * not_run.def that matches the reply. The owner takes the request back. A call of on_one
     * follows.
     */
    void (*on_not_run)(struct hop *hop, enum not_run row, struct slice reply);
    /* Trains only: hop.reply now ends with the whole answer to the train's next request. */
    void (*on_one)(struct hop *hop);
    /* Trains only: the concatenated replies to all requests. The owner may take the bytes. */
    void (*on_replies)(struct hop *hop, struct bytes *replies);
};

/* The news of a hop since the client's link was last woken. */
enum hop_news {
    HOP_NO_NEWS,
    /*
     * refused by `reply`, for the reason `why`; calls behind the hop on its lane are still
     * unanswered
     */
    HOP_REFUSED,
    HOP_RETURNED, /* refused, and all calls behind the hop on its lane are answered */
    HOP_ANSWERED, /* answered by `reply` */
};

/* Embedded in the owner's struct. */
struct hop {
    struct lane_user lane_user;
    struct list in_spread;  /* in spread.hops */
    struct refused refused; /* in spread.refused with HOP_REFUSED */
    struct client *client;
    const struct hop_ops *ops;
    struct place *place; /* where the request is in flight; NULL: not in flight */
    /*
     * the row that refused the hop last; never dereferenced, since the row may have left the
     * topology
     */
    struct nodes_row *from;
    /*
     * target that overrides the slot map: the node of an ASK, or the given node of a command for
     * all nodes; NULL: the slot's node
     */
    struct nodes_row *row;
    struct bytes request; /* multibulk; heap */
    struct bytes reply;   /* the reply so far, or the reason why the request was not run; heap */
    struct alarm alarm;   /* when the hop looks again or gives up */
    size_t n_counted;     /* bytes of the reply that are counted in extra.kept_bytes */
    uint64_t tag;         /* tag of the hop's call (upstream/lane/calls.h) */
    /* when the request came; 0: its time and its errors are not counted */
    uint64_t arrived_ns;
    uint64_t away_ns; /* when for the first time no node took the request; 0: never so far */
    /* time of the first MOVED, ASK or TRYAGAIN since the hop last waited for a node; 0: none */
    uint64_t moving_ns;
    uint64_t look_ns; /* the request is not sent before this time */
    /* the hop is given up at this time; 0: no end, or set by the next redirect */
    uint64_t over_ns;
    int32_t slot;     /* cluster slot of the request's keys, or KEYS_NO_SLOT */
    uint32_t order;   /* position of the request's run in replies; smaller for older requests */
    uint32_t n_train; /* trains: requests without an answer yet; else 0 */
    uint32_t waited_us;
    /* how often the hop has waited, for any reason; each wait doubles the next */
    uint8_t n_tries;
    uint8_t n_redirects; /* consecutive MOVED and ASK */
    uint8_t why;         /* enum not_run: reason of the last refusal; NOT_RUN_ROWS: none */
    uint8_t news;        /* enum hop_news */
    bool is_asking;      /* ASKING goes before the request */
    bool is_fixed;       /* the hop may go to no other node than `row` */
    bool is_held; /* counted in spread.n_held: newer requests of the client wait for the hop */
};

/* Arguments of hop_start. */
struct hop_request {
    struct slice bytes; /* multibulk; copied */
    /* cluster slot of the request's keys; KEYS_NO_SLOT: the request always goes to `row` */
    int32_t slot;
    struct nodes_row *row; /* NULL: the slot's node */
    uint64_t tag;          /* timing_tag */
    uint32_t order;        /* position of the request's run in replies */
    /* from the beginning, younger waiting hops of the slot stay behind this hop */
    bool is_held;
};

/*
 * Starts a hop: sends the request now, or as soon as a lane is available. No call of
 * client.lane_user may be in flight. False: out of memory; the client is closed, and no function of
 * `ops` is called.
 */
__attribute__((warn_unused_result)) bool hop_start(struct hop *hop, const struct hop_ops *ops,
                                                   struct client *client,
                                                   const struct hop_request *request);

/*
 * Starts a train: sends `n` > 0 concatenated requests of request->bytes on this lane at once.
 * request->row is unused. A train is never sent again: see hop_ops. No hop of the client may be
 * waiting. False: as for hop_start.
 */
__attribute__((warn_unused_result)) bool hop_start_train(struct hop *hop, const struct hop_ops *ops,
                                                         struct place *place, struct lane *lane,
                                                         const struct hop_request *request,
                                                         uint32_t n);

/* Why a call at a place was not run. */
struct hop_refusal {
    struct place *place;
    enum not_run why;
    struct slice reply;
};

/*
 * As hop_start, for a request that was just refused. If the request has no bytes, the client gets
 * the refusal.
 */
__attribute__((warn_unused_result)) bool hop_start_refused(struct hop *hop,
                                                           const struct hop_ops *ops,
                                                           struct client *client,
                                                           const struct hop_request *request,
                                                           const struct hop_refusal *refusal);

/* Adapts the hops to a new topology. */
void hops_adopt(struct client *client);

/* Continues the hops after the client's link was woken. Safe without hops. */
void hops_go_on(struct client *client);

/* As places_catch_up, for the lanes of the hops. */
void hops_catch_up(struct client *client);

/* The client is closed, or calls of the client are lost: ends all hops. */
void hops_leave(struct client *client);

/* Frees the hops, once no lane calls the client any more. */
void hops_free(struct client *client);

#endif
