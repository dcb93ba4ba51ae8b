/*
 * What the requests of a client are charged to: the funnels of the connection's subject, of the
 * subject that the key of a command names, or of the connection itself. Clients with limits that
 * are more than a count of commands have a struct meter: funnels of their own, calls in flight that
 * are counted, the turn that a delayed command waits for, bytes that are owed.
 */
#ifndef WEIR_FRONT_METER_H
#define WEIR_FRONT_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/gate.h"
#include "limit/policy/policy.h"
#include "limit/subject.h"
#include "net/alarms.h"

/* Made when first needed; client.meter. */
struct meter {
    struct subject *owns;    /* the connection's own funnels, one holder for each policy it has met; linked by next */
    struct subject *keyed;   /* held: the last that a command's key has named; NULL: none */
    uint8_t connected;       /* COUNTED*: by which limits on connections this one is counted */
    uint32_t counted;        /* calls in flight that limits on them count */
    uint32_t counted_shadow; /* and those that limits in shadow would */
    uint32_t waited_for;     /* id of the limit that delays the next command, plus 1; see struct ask */
    struct turn turn;        /* its places in queues; n 0: none */
    uint64_t headed_ns;      /* since when its next command is the next, while a limit delays it; 0: none does */
    uint64_t virtual_ns; /* when its last command would have gone, had limits in shadow mode delayed it; 0: at once */
    struct alarm delay;  /* set while a limit delays it */
    struct alarm payments[2]; /* set while it owes so many bytes, in and out, that what can be stopped is */
    struct client *client;    /* that it belongs to */
};

/* With room for its alarms. NULL: out of memory; from meter_need then the client is closed. */
struct meter *meter_make(struct client *client);
struct meter *meter_need(struct client *client);

/* With all that it has; safe where there is none. */
void meter_free(struct client *client);

/* Make them where the policy has such limits: once, so that going to and fro refills nothing. False: out of memory. */
__attribute__((warn_unused_result)) bool meter_make_funnels(struct client *client, const struct policy *policy);

/* Other rules bind it: what waits for a limit is asked again at the end of this iteration. */
void meter_ring(struct client *client);
/*
 * The rules have changed: from now on what the connection's own funnels owe runs out at the new rates, under every
 * policy it has met.
 */
void meter_settle(struct client *client, const struct policies *policies);

/* Is its next command one that a limit delays? */
bool meter_is_waiting(const struct client *client);

/* The holders of its places in queues may be let go; what it has been charged is known still. */
void meter_forget_places(struct client *client);

/* Its turn is used, or spent. Or it will not go, and needs no turn. */
void meter_forget_turn(struct client *client);
void meter_leave_queue(struct client *client);

/* ---- which funnels are charged ---- */

/* Those of the connection's subject. The policy is NULL: none. */
struct account payer_of(struct client *client);

/*
 * Those of one request, whose key may name another subject. Good until the next call. Out of memory
 * it is closed.
 */
struct account payer_for(struct client *client, const struct request *request);

/*
 * True if a key decides which funnels these are, and the key is out of sight. No other subject is
 * charged instead.
 */
bool payer_is_hidden(const struct client *client, const struct request *request);

/* The subject that a key has named last is held no longer. */
void payer_let_keyed_go(struct client *client);

#endif
