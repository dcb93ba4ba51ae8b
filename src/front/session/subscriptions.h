/*
 * The subscriptions of one client of a cluster, its taps, and the nodes' answers. subscribe.c
 * carries out requests. resubscribe.c moves subscriptions when their node changes.
 *
 * The client owns the subscriptions (extra.subscriptions). All functions run on the worker's
 * thread.
 */
#ifndef WEIR_FRONT_SUBSCRIPTIONS_H
#define WEIR_FRONT_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "front/session/channels.h"
#include "front/client/client.h"
#include "front/session/tap.h"

/* Progress of the client's present request. */
enum stage {
    STAGE_NONE,     /* no request, or the request has not begun */
    STAGE_BEGUN,    /* the request is to be sent */
    STAGE_ASKED,    /* the request was sent */
    STAGE_ANSWERED, /* all confirmations have come, or subscriptions.error is set */
};

/* call.argument: the part of weir that receives the answer. */
enum asked {
    ASKED_BY_CLIENT,
    ASKED_WIDE,  /* keyspace notifications at another master; the client does not get the answer */
    ASKED_AGAIN, /* SSUBSCRIBE at a slot's new node */
    ASKED_RESET,
};

struct subscriptions {
    struct client *client;
    struct list taps;
    struct tap *classic;      /* the tap for classic pub/sub; NULL: none */
    struct channels channels; /* shard channels, and names subscribed at all masters */
    struct bytes error;       /* Redis' error to the request; empty: none */
    struct lane_user retry;   /* wakes the client's link for another attempt */
    uint64_t redirected_ns;   /* when the request was first redirected; 0: never */
    uint64_t orphaned_ns;     /* when orphans were first noticed; 0: there are no orphans */
    uint32_t n_classic;       /* channels and patterns of classic pub/sub */
    uint8_t stage;            /* enum stage */
    uint8_t counted;          /* limits that count the request; 0 once a call carries the count */
    bool is_charged;          /* the gate has let the request pass */
    bool has_asked;           /* a node was sent the present SUNSUBSCRIBE without channels */
    bool is_wide_set;         /* the request's names for all masters are in `channels` */
};

/* Returns the client's subscriptions, NULL if the client has never subscribed. */
static inline struct subscriptions *subscriptions_of(const struct client *client)
{
    return client_extra(client)->subscriptions;
}

/*
 * Returns the client's subscriptions, made when first needed. NULL: out of memory, and the client
 * is closed.
 */
struct subscriptions *subscriptions_need(struct client *client);

static inline struct tap *subscriptions_tap(struct list *at)
{
    return container_of(at, struct tap, in_taps);
}

static inline struct nodes *subscriptions_nodes(const struct subscriptions *subs)
{
    return &subs->client->front->nodes;
}

static inline struct upstream *subscriptions_upstream(const struct subscriptions *subs)
{
    return subs->client->front->nodes.worker_lanes.upstream;
}

/* Wakes the client's link within 20 ms. The client then continues its request. */
void subscriptions_look_soon(struct subscriptions *subs);

/* Updates extra.n_subscribed. */
void subscriptions_count(struct subscriptions *subs);

/* Keeps Redis' error reply to the request. The first of several errors is kept. */
void subscriptions_note_error(struct subscriptions *subs, struct slice reply);

/*
 * True if the reply is a MOVED for this slot. If true, the slot map gets the new node, if the
 * topology knows that node, and weir requests a new topology.
 */
bool subscriptions_obey(struct subscriptions *subs, const struct tap *tap, struct slice reply,
                        int32_t slot);

/*
 * True if the error says that Redis did not run the request, and that a node may soon serve the
 * slot.
 */
bool subscriptions_is_down(struct slice reply);

/* Closes the client, because no node accepts its subscriptions. */
void subscriptions_close(struct subscriptions *subs);

/*
 * Returns the tap at the node of `row`, NULL if there is none. A NULL `row` finds a tap that has no
 * lane.
 */
struct tap *subscriptions_find_tap(const struct subscriptions *subs, const struct nodes_row *row,
                                   bool is_for_shard);

/*
 * Returns the tap at this node, or a tap without a lane. NULL: out of memory, and the client is
 * closed.
 */
struct tap *subscriptions_need_tap(struct subscriptions *subs, const struct nodes_row *row,
                                   bool is_for_shard);

/* Frees taps without subscriptions, calls and kept frames. */
void subscriptions_free_idle(struct subscriptions *subs);

/* True if a tap has calls in flight. */
bool subscriptions_in_flight(const struct subscriptions *subs);

/*
 * Sends a request of these words. Redis confirms each word except the first. False: out of memory,
 * and the client is closed.
 */
__attribute__((warn_unused_result)) bool subscriptions_send(struct tap *tap,
                                                            const struct slice *words, size_t n,
                                                            struct tap_request request);

/* subscriptions_leave: called when the client is closed. subscriptions_free: frees the memory. */
void subscriptions_leave(struct subscriptions *subs);
void subscriptions_free(struct subscriptions *subs);

#endif
