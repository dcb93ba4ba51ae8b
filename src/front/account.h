/*
 * A client and its limits: which policy binds it, whose funnels its commands are charged to, and what the gate says.
 *
 * The connection has a subject; where the key of a command names one instead, that command is charged to it. What is
 * counted for the connection itself (connections, calls in flight, bytes) belongs to the connection's subject always.
 */
#ifndef WEIR_FRONT_ACCOUNT_H
#define WEIR_FRONT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client.h"
#include "front/request.h"
#include "limit/gate.h"
#include "limit/identity.h"
#include "net/alarms.h"

/* What only clients need whose limits are more than a count of their commands: made when first needed. */
struct meter {
    struct subject *owns;     /* the connection's own funnels, one holder for each policy it has met; linked by next */
    struct subject *keyed;    /* held: the last that a command's key has named; NULL: none */
    uint8_t connected;        /* COUNTED*: as what this connection counts */
    uint32_t counted;         /* its calls in flight that count */
    uint32_t counted_shadow;  /* and those that would */
    uint32_t waited_for;      /* see struct ask; while a limit delays it */
    struct turn turn;         /* there; no holder: none, or it is good no longer */
    uint64_t headed_ns;       /* since when its next command is the next, while a limit delays it; 0: none does */
    struct alarm delay;       /* set while a limit delays it */
    struct alarm payments[2]; /* set while it owes so many bytes, in and out, that what can be stopped is */
    struct link *link;        /* the client's, to be woken */
};

/* It is one connection too many: it reads so, instead of what has been gathered, and leaves. */
void account_turn_away(struct client *client);

/* Who the client is has become known, or has changed. False: it is one too many; or out of memory, and closed. */
bool account_identify(struct client *client);

/* The same, and one too many is turned away. */
bool account_change(struct client *client);

/*
 * The rules change: before that account_unmoor, then account_moor under the new ones, which out of memory closes it.
 * What the connection counts moves along without being asked anew.
 */
void account_unmoor(struct client *client);
void account_moor(struct client *client);

/* It is closed. */
void account_leave(struct client *client);

/* What is known of the client. */
struct facts account_facts(const struct client *client);

/* Whose funnels its commands are charged to that no key speaks for. The policy is NULL: nobody's. */
struct account account_of(struct client *client);

/* The same for one request, whose key may name somebody else. Good until the next call; out of memory it is closed. */
struct account account_for(struct client *client, const struct request *request);

/*
 * Does it depend on a key whose funnels these are, and the key is out of sight? Nobody else is to be charged instead.
 */
bool account_is_hidden(const struct client *client, const struct request *request);

/* May the request go? GATE_PASS: it is charged. GATE_WAIT: its link will be woken, ask again then. It may be closed. */
enum gate account_ask(struct client *client, const struct request *request, struct verdict *verdict);

/* The same for `n` bytes that are no command (an empty line): only debt of bytes makes them wait. */
enum gate account_ask_idly(struct client *client, size_t n);

/*
 * Before a lane is opened for a request: is it refused, or delayed already? GATE_PASS: not yet, and nothing was charged;
 * account_ask decides when it can go. Else as account_ask.
 */
enum gate account_ask_refusal(struct client *client, const struct request *request, struct verdict *verdict);

/* It is answered without going: if it has waited, nobody else gets its turn. */
void account_forgo(struct client *client);

/* Is its next command one that a limit delays? And for much longer? */
bool account_is_waiting(const struct client *client);
bool account_waits_long(const struct client *client);

/*
 * Does it owe more bytes than one burst? Then (UNIT_BYTES_IN) the rest of a large request is not read, or
 * (UNIT_BYTES_OUT) its own lane, and a large reply that nobody waits behind. Its link is woken when that is over.
 */
bool account_is_paying(const struct client *client, enum unit unit);

/*
 * For requests on the short way. Are its limits, if it has any, no more than a count of its commands? Then
 * account_pass_plainly is account_ask: true is GATE_PASS, false GATE_REFUSE.
 */
static inline bool account_is_plain(const struct client *client)
{
    return client->bound == NULL || client->bound->is_plain;
}

static inline bool account_pass_plainly(struct client *client, const struct command *command, struct verdict *verdict)
{
    struct front *front = client->front;
    client->n_commands++;
    if (client->bound == NULL)
        return true;
    bool may = gate_ask_plainly(client->bound, client->subject, command, front->loop->now_ns, front->tallies, verdict);
    client->n_refused += !may;
    return may;
}

/* The same for its bytes, of which there are few. */
static inline void account_note_bytes(struct client *client, uint32_t n)
{
    client->n_bytes += n;
}

/* `n` request bytes have passed, out of memory it is closed; of a request that was let through with these flags of `counted`. */
void account_bytes_in(struct client *client, uint64_t n, uint8_t counted);

/* `n` bytes of replies, messages and pushes have been passed on; the same. */
void account_bytes_out(struct client *client, uint64_t n, uint8_t counted);

/* A call that had these flags of COUNTED has been answered; account_calls_lost: none that is in flight will be. */
void account_answered(struct client *client, uint8_t counted);
void account_calls_lost(struct client *client);

/*
 * May it try to log in? False: too many from its address have failed, under the policy that binds newcomers from there.
 */
bool account_may_login(struct client *client);
bool account_may_login_still(struct client *client); /* the same, and it is not counted again */
void account_login_failed(struct client *client);

/* Hand what has gathered for LIMIT TOP to the worker's table; once for each read. */
void account_tell_top(struct client *client);

#endif
