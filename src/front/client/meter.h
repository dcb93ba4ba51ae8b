/*
 * The charge target of a client's requests: funnels of the connection's subject, of the subject
 * that a key names, or of the connection itself.
 *
 * A client has a struct meter if its limits need more than a count of commands. The meter has
 * funnels of the connection, calls in flight, positions of a delayed command, and debts of bytes.
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

/* client.meter; allocated on first use. */
struct meter {
    /* funnels of the connection, one holder for each policy that ever bound it; linked by `next` */
    struct subject *owns;
    struct subject *keyed;   /* the subject that a key named last; one reference; NULL: none */
    uint8_t connected;       /* set of COUNTED*: limits that count this connection */
    uint32_t counted;        /* calls in flight that limits count */
    uint32_t counted_shadow; /* calls in flight that limits in shadow mode count */
    /* 1 + id of the limit that delays the next command; see struct gate_request */
    uint32_t waited_for;
    struct queue_positions positions; /* positions of the next command in queues; n 0: none */
    uint64_t headed_ns; /* gate_request.headed_ns of the delayed command; 0: none is delayed */
    /* when limits in shadow mode would have let the last command go; 0: at once */
    uint64_t virtual_ns;
    struct alarm delay;       /* set while a limit delays the next command */
    struct alarm payments[2]; /* [0] in, [1] out: set while the debt of bytes stops reading */
    struct client *client;    /* the owner */
};

/*
 * Returns the client's meter, allocated if needed, with room for its alarms. NULL: out of memory.
 */
struct meter *meter_make(struct client *client);

/* As meter_make, but closes the client when memory is out. */
struct meter *meter_need(struct client *client);

/* Frees the meter and its funnels. Safe without a meter. */
void meter_free(struct client *client);

/*
 * Makes the connection's own funnels under this policy, if the policy has limits `per connection`.
 * The funnels of a policy are made only once. A client that changes its policy and then changes
 * back therefore gets no fresh burst. False: out of memory.
 */
__attribute__((warn_unused_result)) bool meter_make_funnels(struct client *client,
                                                            const struct policy *policy);

/*
 * The client has new rules: the client's waits for limits end, and the gate is asked again at the
 * end of this iteration.
 */
void meter_ring(struct client *client);
/*
 * The rules have changed: debts of the connection's own funnels now run out at the new rates, under
 * every policy that ever bound the connection.
 */
void meter_settle(struct client *client, const struct policies *policies);

/* True if a limit delays the next command. */
bool meter_is_waiting(const struct client *client);

/*
 * Forgets the holders of the command's positions, which may be released. The charged amounts stay
 * known.
 */
void meter_forget_positions(struct client *client);

/* The command's positions are used, or lost. */
void meter_drop_positions(struct client *client);

/* The command will not be sent, and gives up its positions. */
void meter_leave_queue(struct client *client);

/* ---- which funnels are charged ---- */

/* The charge target of the connection. Its policy is NULL if no limits apply. */
struct charge_target payer_of(struct client *client);

/*
 * The charge target of one request, by its key if keys name subjects. Valid until the next call.
 * Out of memory closes the client.
 */
struct charge_target payer_for(struct client *client, const struct request *request);

/*
 * True if the charge target depends on a key beyond the buffered part of a large request. weir
 * charges no other subject in place of the key's.
 */
bool payer_is_hidden(const struct client *client, const struct request *request);

/* Releases the subject that a key named last. */
void payer_let_keyed_go(struct client *client);

#endif
