/*
 * A client of a cluster, at all nodes that it uses: its places, and the order of what it hears.
 *
 *     client ---- spread ---- place at node 1 ---- shared lane to node 1, calls of many clients
 *                        \--- place at node 2 ---- shared lane to node 2
 *                         \-- hop                  one request by itself (front/route/hop.h)
 *
 * Two sides, never with calls in flight at the same time:
 *   main    client.rider: what needs a lane of its own (MULTI, WATCH, EVAL, BLPOP, SUBSCRIBE, what is large), and what
 *           changes the session (HELLO, SELECT)
 *   places  one for each node: plain commands with keys of one slot, at all nodes at the same time
 * What needs the other side waits until all calls of the client are answered
 * (client_wait_for_replies). Messages of a subscribed lane go on meanwhile.
 *
 * Order of execution, per key: requests for a slot go to one node, on one lane, in their order.
 * When the node of any slot changes (spread.version), the client's next request waits until all
 * that is in flight at places is answered. While a hop is not on its way in that order nothing
 * newer is taken: WAIT_AGAIN.
 *
 * Order of replies: spread.turns says which place answers next, and how many replies in a row. What
 * another place answers meanwhile waits in its strand. To front/route/replies.h all places are one source:
 * a run for each stretch of calls at places, with a compound or what weir says in between. With
 * nothing of that kind replies are idle.
 *
 *   requests   GET a   GET b   GET c   MGET d e   GET f
 *   turns      1       2 2             end        1        place and replies; `end`: of a stretch
 *   replies    \__ run ____________/   compound   \ run
 *
 * Owner: the client, extra.spread; its worker's thread. On one server there is none. Knows of no
 * client.
 */
#ifndef WEIR_FRONT_SPREAD_H
#define WEIR_FRONT_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "front/route/replies.h"
#include "front/route/unanswered.h"
#include "limit/command/key_filter.h"
#include "resp/scan.h"
#include "upstream/login/doors.h"
#include "upstream/node/nodes.h"
#include "upstream/node/topology.h"

struct client;

#define SPREAD_TURNS_KEPT 32 /* a ring of no more is kept while it is empty */
#define WROTE_TOLD 1U        /* place.wrote_at: what it wrote there may be lost, and a WAIT has told of that */

/* The rider of the client's requests on the shared lane to one node: front/route/place.h. */
struct place {
    struct rider rider;
    struct client *client;
    struct nodes_row *row;
    struct list in_retired;       /* in spread.retired; itself while its node is in the topology */
    struct lease shared;          /* on the shared lane there */
    struct early strand;          /* of its replies, those that may not go yet */
    struct reply_scan scan;       /* of those that may go, where the last of them ends */
    uint32_t n_turns;             /* of its replies, those that the client has not got */
    struct unanswered unanswered; /* its requests under way */
    struct proof proof;           /* that the node takes the client's words */
    struct question question;     /* whether it does; question.login NULL: it is not being asked */
    char *refusal;                /* why no lane could be had, in Redis' words or weir's; heap; NULL: none */
    uint32_t epoch;               /* of the node, when the client came there; see node_epoch */
    uint32_t n_hops;              /* hops that are in flight there, ... */
    const struct lane *hop_lane;  /* ... on this lane, while there are some */
    uint32_t wrote_at;            /* when it last wrote there, as coverage_time has it; 0: it has not; WROTE_TOLD */
    uint64_t heard_ns;            /* when the node answered last; kept of clients that read from replicas */
    uint64_t avoided_until_ns;    /* of a replica that takes no lane of the client: it is not used until then */
    uint32_t doubts;              /* reach.doubts of the node at that answer */
    bool is_in_frame;             /* what has gone of its replies ends within one */
    bool was_proven;              /* the node has taken the client's words once */
    bool was_refused; /* the lane that it waited for could not be opened, or the login was refused; told once */
};

/* Replies that come in a row. */
struct reply_turn {
    struct place *place; /* NULL: the end of a stretch, which is a run of replies */
    uint32_t n;
    uint32_t order; /* of the first: spread.order when it was asked for */
};

struct spread {
    struct place **places;  /* by row of the topology that the worker has adopted; NULL: none there yet; heap */
    size_t n_places;        /* size of that */
    struct list retired;    /* places of nodes that have left the topology, while calls are in flight there */
    struct list hops;       /* struct hop, oldest first: all that are not over */
    struct list refused;    /* struct refused (front/route/overtaken.h) */
    uint32_t n_hops;        /* how many */
    uint32_t n_held;        /* of them, those that are not on their way in order: WAIT_AGAIN */
    struct list *heir_next; /* hops that begin stand before it, in the place of one that is over; or NULL */
    uint32_t heir_order;    /* and have the order of that one */
    struct reply_turn
        *turns; /* a ring, oldest first: the places of the replies, in the client's order; heap; NULL: none yet */
    uint32_t capacity;          /* of the ring, a power of two */
    uint32_t head, tail;        /* of the ring; positions count on for ever and wrap */
    uint32_t order;             /* requests so far, which count on and wrap: of hops and compounds, too */
    struct reply_source source; /* all places, to replies */
    bool is_open;               /* the newest turn's stretch goes on */
    bool is_run;                /* and is a run of replies: else these are idle */
    uint32_t version;           /* of the slot map, when what is in flight was sent */
    bool is_stale;              /* another topology has been adopted since then */
    struct key_filter several;  /* keys of commands with several keys that are in flight */
    struct nodes_row *target; /* where the client's next request goes, while it waits for a lane; NULL: the home node */
};

/* NULL: out of memory. */
struct spread *spread_new(void);

/* Calls in flight at places, and hops that are not over. 0 for NULL. */
uint32_t spread_in_flight(const struct spread *spread);

/*
 * True if a slot's node has changed since what is in flight at places was sent. If not, a row that
 * was read before is the one to which the slot's calls in flight were sent: topology.h.
 */
static inline bool spread_is_outdated(const struct spread *spread, const struct nodes *nodes)
{
    return spread->is_stale || spread->version != slot_map_version(nodes->topology->slots);
}

/* The client's place at this node; NULL: it has none. Safe on NULL. */
struct place *spread_place(const struct spread *spread, const struct nodes_row *row);

/* The same by node. */
struct place *spread_place_at(const struct spread *spread, const struct node *node);

/*
 * The next n requests go to this place, and their replies follow all earlier ones. Not of those
 * that are not heard. False: out of memory.
 */
__attribute__((warn_unused_result)) bool spread_turn_slowly(struct spread *spread, struct replies *replies,
                                                            struct place *place, uint32_t n);

__attribute__((warn_unused_result)) static inline bool spread_turn(struct spread *spread, struct replies *replies,
                                                                   struct place *place, uint32_t n)
{
    if (!spread->is_open)
        return spread_turn_slowly(spread, replies, place, n);
    const uint32_t mask = spread->capacity - 1;
    if (spread->head == spread->tail) {
        if (spread->is_run || spread->capacity == 0 || !replies_are_idle(replies))
            return spread_turn_slowly(spread, replies, place, n);
        spread->turns[spread->tail++ & mask] = (struct reply_turn){place, n, spread->order};
    } else {
        struct reply_turn *newest = &spread->turns[(spread->tail - 1) & mask];
        if (newest->place != place)
            return spread_turn_slowly(spread, replies, place, n);
        newest->n += n;
    }
    place->n_turns += n;
    spread->order += n;
    return true;
}

/* Where bytes go that have their turn. */
struct spread_outlet {
    bool (*put)(void *arg, const char *data, size_t n); /* false: no more, and the order is forgotten perhaps */
    void *arg;
};

/*
 * The next bytes of the place's replies; `is_whole`: they end where a reply does. What has its turn
 * is put out. False: out of memory.
 */
__attribute__((warn_unused_result)) bool spread_take(struct spread *spread, struct replies *replies,
                                                     struct place *place, struct slice bytes, bool is_whole,
                                                     const struct spread_outlet *outlet);

/*
 * The short way of spread_take, of bytes that end where a reply does. True if that reply is all that
 * the client waits for: it has been taken, and its bytes are to be put out.
 */
static inline bool spread_take_only(struct spread *spread, const struct replies *replies, struct place *place)
{
    if (place->n_turns != 1 || spread->tail - spread->head != 1 || place->strand.first != NULL ||
        spread->capacity > SPREAD_TURNS_KEPT || !replies_are_idle(replies))
        return false;
    spread->head++;
    place->n_turns = 0;
    if (place->is_in_frame) {
        place->scan = (struct reply_scan){0};
        place->is_in_frame = false;
    }
    return true;
}

/* A reply that was held back has come: as spread_take. */
__attribute__((warn_unused_result)) bool spread_go_on(struct spread *spread, struct replies *replies,
                                                      const struct spread_outlet *outlet);

/*
 * True if a part of the place's next reply has gone to the client, and the rest can go past
 * spread_take; spread_passed: so much of it has.
 */
bool spread_may_pass(const struct spread *spread, const struct replies *replies, const struct place *place);
void spread_passed(struct place *place, size_t n);

/* spread.order of the place's next reply. */
uint32_t spread_order_of(const struct spread *spread, const struct place *place);

/* True if a part of a place's reply has gone to the client. */
bool spread_is_in_frame(const struct spread *spread);

/* No reply is waited for any more. Before replies_clear. */
void spread_forget(struct spread *spread, struct replies *replies);

/*
 * What is said next comes from elsewhere, behind all that is in flight: what was asked of places
 * so far is a run that ends. False: out of memory.
 */
__attribute__((warn_unused_result)) bool spread_end_run(struct spread *spread, struct replies *replies);

/* No more requests are taken for now: replies may fall idle once all is answered. */
void spread_end_batch(struct spread *spread, struct replies *replies);

/* Have each rider that has calls in flight resumed once it has none. */
void spread_want_idle(struct spread *spread);

/* The client's session is another; `has_logged_in`: its user, too. Safe on NULL. */
void spread_end_session(struct spread *spread, bool has_logged_in);

/* It is at each node as if it had just connected there. Safe on NULL. */
void spread_renew_epochs(struct spread *spread);

/*
 * Whether the node takes the client's words is not waited for any more. Safe where that is not
 * being asked.
 */
void spread_end_question(struct place *place);

#endif
