/*
 * What is remembered of what a client of a cluster sends on its own lane: the call that may come back
 * (front/cluster/carry.h), and the
 * transaction that it may be in (front/session/multi.h). Here is the state alone, for the parts below those.
 *
 * Owner: extra.carry, made when first needed, until the client is closed. The worker's thread.
 */
#ifndef WEIR_FRONT_CARRIED_H
#define WEIR_FRONT_CARRIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "front/client/client.h"
#include "front/session/transaction.h"
#include "net/alarms.h"
#include "upstream/node/nodes.h"

enum carry_step {
    CARRY_NONE,    /* nothing can come back; in MULTI: requests are queued */
    CARRY_SENT,    /* the call is under way */
    CARRY_WAITS,   /* it has come back, or is EXEC: it is sent as soon as it can go */
    CARRY_BEGINS,  /* MULTI is under way, and its answer is waited for */
    CARRY_REPLAYS, /* what is queued is under way; the replies are dropped */
};

enum carry_why {
    CARRY_NOT_REFUSED,
    CARRY_MOVED,
    CARRY_ASK,
    CARRY_TRYAGAIN,
    CARRY_AWAY,      /* CLUSTERDOWN, LOADING, READONLY, MASTERDOWN */
    CARRY_UNBLOCKED, /* the node of a blocked command has become a replica */
};

/* What a transaction does at the steps of its EXEC: front/session/multi.c's. */
struct carry_ops {
    /* An error reply to a request that was to be queued. True: it is a redirect. */
    bool (*take_refusal)(struct client *client, struct slice reply);
    /* EXEC is to be sent, or what goes before it. */
    void (*go_on)(struct client *client);
    /* EXEC was refused by a redirect. The reply to the client if watched keys have gone with it; else empty. */
    struct slice (*lost)(const struct client *client);
    /* The transaction is over. */
    void (*end)(struct client *client);
};

struct carry {
    struct client *client;
    const struct carry_ops *ops; /* NULL: the client has been in no transaction */
    struct alarm alarm;          /* the next look, or the end of the wait */
    struct bytes request;        /* the one that is kept, multibulk; heap */
    struct bytes held;           /* of an error reply, what has come; heap */
    struct bytes refusal;        /* the whole reply by which it was refused last; heap */
    struct command_queue queue;  /* of the transaction; its slot is also that of watched keys */
    struct nodes_row *there; /* an ASK's target; compared with rows of the topology before it is followed; NULL: none */
    uint64_t asked_ns; /* when that ASK came: an old one leads to a node that may have nothing to do with it any more */
    struct nodes_row *from; /* the node that refused it last; only compared */
    uint64_t tag;           /* of the call, as the next five: see struct call */
    uint64_t arrived_ns;
    uint32_t waited_us;
    uint32_t argument;
    uint8_t flags;
    uint8_t effect;
    int32_t slot;        /* of its keys; KEYS_NO_SLOT: none */
    uint64_t sent_ns;    /* when it was sent first */
    uint64_t since_ns;   /* when it was refused first; 0: it has not been */
    uint64_t look_ns;    /* it is not sent before that */
    uint64_t pause_ns;   /* before the next sending; grows */
    uint64_t over_ns;    /* it is given up then */
    uint8_t step;        /* enum carry_step */
    uint8_t why;         /* enum carry_why, of the last refusal */
    uint8_t n_redirects; /* MOVED and ASK so far */
    bool is_kept;        /* `request` is here in full */
    bool may_forge;      /* its reply may be a script's own */
    bool may_wait;       /* in Redis */
    bool is_muted;       /* the client does not hear its reply */
    bool in_reply;       /* a part of the reply has been passed on */
    /* ---- EXISTS in weir's words, after a redirect that a script may have forged ---- */
    struct bytes proof;        /* the request; heap */
    struct nodes_row *suspect; /* the node that has answered the redirect; only compared */
    bool is_proving;           /* it is that EXISTS which is sent, and sent again */
    bool is_proven;            /* another node has answered it */
    bool has_failed;           /* it has been answered by an error */
    /* ---- EXISTS in weir's words, before a request that is too large to be kept ---- */
    struct nodes_row *owner; /* the node that has answered it; compared with rows before it is followed; NULL: none */
    bool is_probe;           /* it is that EXISTS which is kept */
    bool is_probed;          /* it is over, and the client's next request is the large one */
    bool owner_asks;         /* and that node wants ASKING */
    /* ---- of a transaction ---- */
    bool is_exec;          /* it is EXEC that is sent */
    bool is_begun;         /* MULTI has been answered well on the client's lane */
    bool is_refused;       /* MULTI was refused there */
    bool is_void;          /* something was refused by weir or Redis: EXEC runs nothing */
    bool must_move;        /* a node has refused something queued: EXEC sends the queue again */
    bool is_lost;          /* so with watched keys: EXEC is a lost race */
    bool asks_there;       /* keys are watched behind ASKING: MULTI follows ASKING, too */
    struct lease watching; /* on the lane where Redis watches keys for the client; set by carried_watch */
};

/* NULL: nothing was kept so far. */
static inline struct carry *carry_of(const struct client *client)
{
    return client_extra(client)->carry;
}

/* True while a call is under way that may come back, or has come back: nothing newer is taken. */
static inline bool carry_is_busy(const struct client *client)
{
    return client->is_carrying;
}

static inline void carry_set_step(struct carry *carry, enum carry_step step)
{
    carry->step = (uint8_t)step;
    carry->client->is_carrying = step != CARRY_NONE;
}

/* True if Redis is between MULTI and EXEC on the client's lane in weir's words, which no client may see. */
static inline bool carry_holds_lane(const struct client *client)
{
    return carry_of(client) != NULL && (carry_of(client)->is_begun || carry_of(client)->step >= CARRY_BEGINS);
}

/*
 * True if nothing is lost with the client's lane but a transaction, which can be sent to another node, or watched
 * keys: EXEC tells of their loss. Redirects of the node that has become a replica lead away from there.
 */
static inline bool carry_survives(const struct client *client)
{
    bool is_watching = client->pins == PIN_WATCH;
    return carry_of(client) != NULL && (is_watching || (client->pins == 0 && carry_of(client)->is_begun));
}

/* weir has refused a request in a transaction: EXEC runs nothing. Safe without one. */
static inline void carried_void(struct client *client)
{
    if (carry_of(client) != NULL)
        carry_of(client)->is_void = true;
}

/* weir's MULTI has been answered on the client's lane. */
static inline void carried_begin(struct client *client, bool is_ok)
{
    carry_of(client)->is_begun = is_ok;
    carry_of(client)->is_refused = !is_ok;
    client_resume(client, WAIT_ANSWER);
}

/* Redis has said that it watches keys for the client, on the client's own lane. */
void carried_watch(struct client *client);

/*
 * True if keys that the client has watched are watched no more: the client has another lane than the one that watches
 * them, or none. EXEC is a lost race then. Only with a carry.
 */
bool carried_has_lost_watch(const struct client *client);

/*
 * The client leaves its lane: keys that are watched there are watched no more, and EXEC sends what was queued there
 * to another node. Before pins_end. Safe without a carry.
 */
void carried_note_left(struct client *client);

/* There is no transaction, nor is one known to Redis. Safe without one. */
void carried_forget(struct client *client);

#endif
