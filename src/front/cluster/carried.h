/*
 * A carry: the state of the requests that a client of a cluster sends on its private lane. A carry
 * covers the call that may be sent again (front/cluster/carry.h), and the client's transaction
 * (front/session/multi.h). Modules below carry.h and multi.h include only this file.
 *
 * The client owns its carry (extra.carry). carry_need makes the carry, carry_free frees the carry.
 * All functions run on the worker's thread.
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
    CARRY_NONE,    /* no call can be refused and sent again; in MULTI: requests are being queued */
    CARRY_SENT,    /* the call is in flight */
    CARRY_WAITS,   /* the call was refused, or is EXEC, and is sent as soon as possible */
    CARRY_BEGINS,  /* MULTI is in flight */
    CARRY_REPLAYS, /* the queued requests are in flight; their replies are dropped */
};

enum carry_why {
    CARRY_NOT_REFUSED,
    CARRY_MOVED,
    CARRY_ASK,
    CARRY_TRYAGAIN,
    CARRY_AWAY,      /* CLUSTERDOWN, LOADING, READONLY, MASTERDOWN */
    CARRY_UNBLOCKED, /* the node of a blocked command has become a replica */
};

/* Callbacks of a transaction for the steps of its EXEC; set by front/session/multi.c. */
struct carry_ops {
    /* Takes an error reply to a request of the queue. True if the reply is a redirect. */
    bool (*take_refusal)(struct client *client, struct slice reply);
    /* Sends EXEC, or the requests that must precede EXEC. */
    void (*go_on)(struct client *client);
    /*
     * Called when a redirect refused EXEC. Returns the reply to the client if watched keys are lost
     * with the redirect, else an empty slice.
     */
    struct slice (*lost)(const struct client *client);
    /* Ends the transaction. */
    void (*end)(struct client *client);
};

struct carry {
    struct client *client;
    const struct carry_ops *ops; /* NULL: the client has not been in a transaction */
    struct alarm alarm;          /* due at the next attempt, or at the end of the wait */
    struct bytes request;        /* the kept request, multibulk; heap */
    struct bytes held;           /* the part of an error reply received so far; heap */
    struct bytes refusal;        /* the last refusal, a whole reply; heap */
    /* the transaction's queued requests; queue.slot is also the slot of watched keys */
    struct command_queue queue;
    /* the node that an ASK names; looked up in the topology before use; NULL: no ASK */
    struct nodes_row *there;
    /* time of the ASK; an old ASK may name a node that no longer imports the slot */
    uint64_t asked_ns;
    /* the node of the last refusal; only compared later, because the node may leave the topology */
    struct nodes_row *from;
    uint64_t tag; /* tag and the next five fields describe the call: see struct call */
    uint64_t arrived_ns;
    uint32_t waited_us;
    uint32_t argument;
    uint8_t flags;
    uint8_t effect;
    int32_t slot; /* slot of the request's keys; KEYS_NO_SLOT: no keys */
    /* time of the first sending; for a command that may block, of the last sending */
    uint64_t sent_ns;
    uint64_t since_ns;   /* time of the first refusal; 0: not refused */
    uint64_t look_ns;    /* the call is not sent before this time */
    uint64_t pause_ns;   /* ns to wait before the next sending; grows with each refusal */
    uint64_t over_ns;    /* time at which weir stops sending the call again */
    uint8_t step;        /* enum carry_step */
    uint8_t why;         /* enum carry_why of the last refusal */
    uint8_t n_redirects; /* MOVED and ASK received so far */
    bool is_kept;        /* `request` holds the whole request */
    bool may_forge;      /* the reply may be forged by a script */
    bool may_wait;       /* the command may block in Redis */
    bool is_muted;       /* the client does not receive the reply */
    bool in_reply;       /* a part of the reply has been passed on */
    /* ---- EXISTS sent by weir, after a redirect that a script may have forged ---- */
    struct bytes proof;              /* the EXISTS request; heap */
    struct nodes_row *redirected_by; /* the node that sent the redirect; only compared */
    bool is_proving;                 /* the request being sent is this EXISTS */
    bool is_proven;                  /* another node has answered this EXISTS */
    bool has_failed;                 /* this EXISTS was answered by an error */
    /* ---- EXISTS sent by weir, before a request that is too large to be kept ---- */
    /* the node that answered the EXISTS; looked up in the topology before use; NULL: no answer */
    struct nodes_row *owner;
    bool is_probe;   /* the kept request is this EXISTS */
    bool is_probed;  /* the EXISTS is finished, and the client's next request is the large one */
    bool owner_asks; /* `owner` requires ASKING */
    /* ---- transactions ---- */
    bool is_exec;    /* the request being sent is EXEC */
    bool is_begun;   /* MULTI has succeeded on the client's lane */
    bool is_refused; /* MULTI has failed on the client's lane */
    bool is_void;    /* weir or Redis has refused a queued request: EXEC runs nothing */
    bool must_move;  /* a node has redirected a queued request: EXEC sends the whole queue again */
    bool is_lost;    /* watched keys are lost: EXEC returns nil */
    bool asks_there; /* keys are watched behind ASKING: MULTI needs ASKING, too */
    /* lease on the lane where Redis watches keys for the client; set by carried_watch */
    struct lease watching;
};

/* Returns the client's carry, NULL if carry_need has not made one. */
static inline struct carry *carry_of(const struct client *client)
{
    return client_extra(client)->carry;
}

/*
 * True while a call that may be refused is in flight, or a refused call waits to be sent again.
 * While true, weir takes no newer request of the client.
 */
static inline bool carry_is_busy(const struct client *client)
{
    return client->is_carrying;
}

static inline void carry_set_step(struct carry *carry, enum carry_step step)
{
    carry->step = (uint8_t)step;
    carry->client->is_carrying = step != CARRY_NONE;
}

/*
 * True if the client's lane is inside a MULTI that weir has sent. weir does not give back a lane
 * inside MULTI, so that no other client gets the lane.
 */
static inline bool carry_holds_lane(const struct client *client)
{
    return carry_of(client) != NULL &&
           (carry_of(client)->is_begun || carry_of(client)->step >= CARRY_BEGINS);
}

/*
 * True if the client can stay open when its lane is lost: only a transaction or watched keys depend
 * on the lane. The transaction can be sent to another node, and EXEC reports the loss of watched
 * keys. A node that has become a replica redirects to the new master.
 */
static inline bool carry_survives(const struct client *client)
{
    bool is_watching = client->pins == PIN_WATCH;
    return carry_of(client) != NULL &&
           (is_watching || (client->pins == 0 && carry_of(client)->is_begun));
}

/*
 * Called when weir refuses a request in a transaction. EXEC will run nothing. Safe without a carry.
 */
static inline void carried_void(struct client *client)
{
    if (carry_of(client) != NULL)
        carry_of(client)->is_void = true;
}

/* Called when weir's MULTI has been answered on the client's lane. */
static inline void carried_begin(struct client *client, bool is_ok)
{
    carry_of(client)->is_begun = is_ok;
    carry_of(client)->is_refused = !is_ok;
    client_resume(client, WAIT_ANSWER);
}

/* Called when Redis has confirmed a WATCH on the client's private lane. */
void carried_watch(struct client *client);

/*
 * True if Redis no longer watches the client's keys: the client has no lane, or another lane than
 * the one that watched. EXEC returns nil if this function returns true. Requires a carry.
 */
bool carried_has_lost_watch(const struct client *client);

/*
 * Called when the client gives up its lane. The keys watched on the lane are lost, and EXEC sends
 * the queue to another node. Must be called before pins_end. Safe without a carry.
 */
void carried_note_left(struct client *client);

/* Clears the state of the transaction. Safe without a carry. */
void carried_forget(struct client *client);

#endif
