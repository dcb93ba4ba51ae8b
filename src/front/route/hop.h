/*
 * One request on its way by itself: sent, and sent again while a cluster says that it has not run
 * it.
 *
 *   MOVED        the slot's node is another from now on: there; an unknown address: the topology is asked for, and
 *   waited for ASK          there, behind ASKING, in one append
 *   TRYAGAIN     again after 1, 2, 4 .. 50 ms; what has redirected it until then is forgotten
 *   CLUSTERDOWN, LOADING, READONLY, MASTERDOWN   the topology is asked for; again after 10 .. 100 ms
 *
 * A hop begins in two ways: as a call that came back from a place (front/route/taken.h), or as a part of a
 * compound (front/cluster/compound_parts.h).
 *
 * A request that was refused is looked at once all that was in flight behind it on that lane is
 * answered. If one of these has overtaken it (front/route/overtaken.h), the refusal is the reply,
 * `-UPSTREAM moved` for a redirect.
 *
 * A train is a hop of several requests, each of one slot, to one node: sent once, and answered one by
 * one. What was not run of it goes on as a hop of its own.
 *
 * Bounds: at most HOPS_MAX sendings for MOVED and ASK, at most redirect-timeout, then `-UPSTREAM
 * moved`; TRYAGAIN for at most redirect-timeout, the others for at most failover-wait, then the
 * reply is passed on. A node that is away, to which a redirect leads, is waited for as any other:
 * redirect-timeout begins again behind it. A MOVED or ASK for another slot than the request's own is
 * forged or wrong: `-UPSTREAM moved`. Nothing is dialled that is not in the topology.
 *
 * Invariants: never sent again after a lost lane, which closes the client. Hops of one slot are
 * sent in their order, one after the other, and never to another node while older calls of the slot
 * are in flight. While a hop waits the client's newer requests do: WAIT_AGAIN. Owner: see hop_ops;
 * the worker's thread.
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
 * on_reply (of a train: on_replies) or on_lost is called, once, never from within hop_start; the hop
 * is over before that, and its memory the owner's, which may start it again.
 */
struct hop_ops {
    /* The whole reply to its request. The slice is good for this call. */
    void (*on_reply)(struct hop *hop, struct slice reply);
    /*
     * TRYAGAIN to `request`: true: the owner goes on without it, the hop is over, and nothing more
     * is called. Hops that the owner starts in this call stand in its place among those of the slot.
     * NULL: again.
     */
    bool (*on_try_again)(struct hop *hop, struct slice request);
    /* There will be no reply: the client is closed, and nothing calls it any more. */
    void (*on_lost)(struct hop *hop);
    /*
     * Of a train: its next request was not run, for this reply of that row: it is the owner's again.
     * on_one follows.
     */
    void (*on_not_run)(struct hop *hop, enum not_run row, struct slice reply);
    /* Of a train: all that its next request hears is in hop.reply now. */
    void (*on_one)(struct hop *hop);
    /* Of a train: the replies to all its requests, one behind the other. The owner may take the bytes. */
    void (*on_replies)(struct hop *hop, struct bytes *replies);
};

/* What has become of it since the client's link was woken last. */
enum hop_news {
    HOP_NO_NEWS,
    HOP_REFUSED,  /* by `reply`, of row `why`; what was in flight behind it there is not all answered */
    HOP_RETURNED, /* so, and now it is */
    HOP_ANSWERED, /* by `reply` */
};

/* Embedded in the owner's struct. */
struct hop {
    struct rider rider;
    struct list in_spread;  /* spread.hops */
    struct refused refused; /* with HOP_REFUSED */
    struct client *client;
    const struct hop_ops *ops;
    struct place *place;    /* where it is in flight; NULL: nowhere */
    struct nodes_row *from; /* that has refused it last; compared alone, unless it is in the topology */
    struct nodes_row
        *row; /* it goes here whatever the slot map says: an ASK's target, or a fan-out's node; NULL: by slot */
    struct bytes request; /* multibulk; heap */
    struct bytes reply;   /* what has come of it, or why it was not run; heap */
    struct alarm alarm;   /* the next look, or the end of the wait */
    size_t n_counted;     /* bytes of the reply that are in extra.kept_bytes */
    uint64_t tag;         /* of its call (upstream/lane/calls.h) */
    uint64_t arrived_ns;  /* when the request came; 0: it is not timed, nor its errors counted */
    uint64_t away_ns;     /* when no node took it first; 0: each one has */
    uint64_t moving_ns;   /* the first MOVED, ASK or TRYAGAIN since then; 0: none */
    uint64_t look_ns;     /* it is not sent before that */
    uint64_t over_ns;     /* it is given up then; 0: it has no end, or that of the next redirect */
    int32_t slot;         /* of its keys, or KEYS_NO_SLOT */
    uint32_t order;       /* the position of its run in replies: of an older request it is less */
    uint32_t n_train;     /* of a train, requests that have heard nothing yet; else 0 */
    uint32_t waited_us;
    uint8_t n_tries;     /* pauses so far, of one kind */
    uint8_t n_redirects; /* MOVED and ASK, one after the other */
    uint8_t why;         /* enum not_run: why it was refused last; NOT_RUN_ROWS: it has not been */
    uint8_t news;        /* enum hop_news */
    bool is_asking;      /* ASKING goes before it */
    bool is_fixed;       /* `row` stays: a fan-out's */
    bool is_held;        /* counted in spread.n_held: not on its way in order */
};

/* What hop_start is given. */
struct hop_request {
    struct slice bytes;    /* multibulk; copied */
    int32_t slot;          /* of its keys; KEYS_NO_SLOT: it goes to `row`, whatever happens */
    struct nodes_row *row; /* NULL: to the slot's node */
    uint64_t tag;          /* timing_tag */
    uint32_t order;        /* the position of the request's run in replies */
    bool is_held;          /* younger hops of its slot that wait stay behind it from the beginning */
};

/*
 * Sends it, now or as soon as it can go. The client has no call of main's in flight. False: out of
 * memory, the client is closed, and nothing more is called.
 */
__attribute__((warn_unused_result)) bool hop_start(struct hop *hop, const struct hop_ops *ops, struct client *client,
                                                   const struct hop_request *request);

/*
 * A train: `n` > 0 requests, one behind the other in request->bytes, that go to this lane of the place at
 * once; request->row is not used. It is never sent again: see hop_ops. No hop of the client waits.
 * False: as of hop_start.
 */
__attribute__((warn_unused_result)) bool hop_start_train(struct hop *hop, const struct hop_ops *ops,
                                                         struct place *place, struct lane *lane,
                                                         const struct hop_request *request, uint32_t n);

/* Why a call at a place was not run. */
struct hop_refusal {
    struct place *place;
    enum not_run why;
    struct slice reply;
};

/* As hop_start, of a request that was refused just now; without bytes it hears the refusal. */
__attribute__((warn_unused_result)) bool hop_start_refused(struct hop *hop, const struct hop_ops *ops,
                                                           struct client *client, const struct hop_request *request,
                                                           const struct hop_refusal *refusal);

/* Another topology has been adopted. */
void hops_adopt(struct client *client);

/* The client's link was woken: hops have news, or look again. Safe without any. */
void hops_go_on(struct client *client);

/* As places_catch_up. */
void hops_catch_up(struct client *client);

/* The client is closed, or calls of its are lost. hops_free: and nothing calls it any more. */
void hops_leave(struct client *client);
void hops_free(struct client *client);

#endif
