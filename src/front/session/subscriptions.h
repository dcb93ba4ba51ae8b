/*
 * What one client of a cluster has subscribed to, its taps, and what nodes say by them. How
 * requests are carried out is in subscribe.c, what becomes of subscriptions when their node
 * changes in resubscribe.c.
 *
 * Owner: the client, extra.subscriptions; the worker's thread.
 */
#ifndef WEIR_FRONT_SUBSCRIPTIONS_H
#define WEIR_FRONT_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "front/session/channels.h"
#include "front/client/client.h"
#include "front/session/tap.h"

/* How far the client's next request is. */
enum stage {
    STAGE_NONE,     /* there is none, or nothing of it has been done */
    STAGE_BEGUN,    /* it is to be sent */
    STAGE_ASKED,    /* it has been sent */
    STAGE_ANSWERED, /* in full, or with subscriptions.error */
};

/* call.argument: the part of weir that wants the answer. */
enum asked {
    ASKED_BY_CLIENT,
    ASKED_WIDE,  /* of another master, beside what the client hears of */
    ASKED_AGAIN, /* at a slot's new node */
    ASKED_RESET,
};

struct subscriptions {
    struct client *client;
    struct list taps;
    struct tap *classic;      /* by which the client hears of classic pub/sub; NULL: by none */
    struct channels channels; /* of shards, and what is subscribed to at all masters */
    struct bytes error;       /* Redis' error to the request; empty: none */
    struct rider retry;       /* wakes the client to look again */
    uint64_t redirected_ns;   /* when the request was first redirected; 0: it has not been */
    uint64_t orphaned_ns;     /* since when there have been orphans; 0: there are none */
    uint32_t n_classic;       /* channels and patterns */
    uint8_t stage;            /* enum stage */
    uint8_t counted;          /* of the request, while no call has it */
    bool is_charged;          /* the gate has let the request pass */
    bool has_asked;           /* SUNSUBSCRIBE of everything: a node has answered */
    bool is_wide_set;         /* what the request says of all masters is in channels */
};

/* NULL: it has subscribed to nothing yet. */
static inline struct subscriptions *subscriptions_of(const struct client *client)
{
    return client_extra(client)->subscriptions;
}

/* Made when first needed. NULL: out of memory, the client is closed. */
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
    return subs->client->front->nodes.commons.upstream;
}

/* The client's link is woken in a moment, to look again. */
void subscriptions_look_soon(struct subscriptions *subs);

/* extra.n_subscribed is what there is now. */
void subscriptions_count(struct subscriptions *subs);

/* Redis has answered the request by this error reply; of several the first is kept. */
void subscriptions_note_error(struct subscriptions *subs, struct slice reply);

/*
 * True if the reply is a redirect for this slot: the slot has another node from now on, or the
 * topology is asked for.
 */
bool subscriptions_obey(struct subscriptions *subs, const struct tap *tap, struct slice reply, int32_t slot);

/* True if Redis has not run what it answers so: a node that serves the slot is to be waited for. */
bool subscriptions_is_down(struct slice reply);

/* No node takes what the client has subscribed to: it is closed. */
void subscriptions_close(struct subscriptions *subs);

/* The tap at this node; NULL: there is none. Without a row: one that has no lane. */
struct tap *subscriptions_find_tap(const struct subscriptions *subs, const struct nodes_row *row, bool is_for_shard);

/* The one there, or one without a lane. NULL: out of memory, the client is closed. */
struct tap *subscriptions_need_tap(struct subscriptions *subs, const struct nodes_row *row, bool is_for_shard);

/* Those that nothing is heard by any more are gone. */
void subscriptions_free_idle(struct subscriptions *subs);

/* True if a tap has calls in flight. */
bool subscriptions_in_flight(const struct subscriptions *subs);

/*
 * Send a request of these words, of which all but the first are confirmed. False: out of memory,
 * the client is closed.
 */
__attribute__((warn_unused_result)) bool subscriptions_send(struct tap *tap, const struct slice *words, size_t n,
                                                            struct tap_request request);

/* The client is closed; its memory goes. */
void subscriptions_leave(struct subscriptions *subs);
void subscriptions_free(struct subscriptions *subs);

#endif
