/*
 * What the gate says to a client's requests, and what has passed: commands, calls in flight, bytes
 * both ways.
 *
 * The connection has a subject (front/client/binding.h); where the key of a command names one
 * instead, that command is charged to it (front/client/meter.h). What is counted for the connection
 * itself (connections, calls in flight, bytes) belongs to the connection's subject always.
 */
#ifndef WEIR_FRONT_ACCOUNT_H
#define WEIR_FRONT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/binding.h"
#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/gate.h"

/* May the request go? GATE_PASS: it is charged. GATE_WAIT: its link will be woken, ask again then. It may be closed. */
enum gate account_ask(struct client *client, const struct request *request, struct verdict *verdict);

/* The same for `n` bytes that are no command (an empty line): only debt of bytes makes them wait. */
enum gate account_ask_idly(struct client *client, size_t n);

/*
 * Before a lane is opened for a request: is it refused, or delayed already? GATE_PASS: not yet, and nothing was
 * charged; account_ask decides when it can go. Else as account_ask.
 */
enum gate account_ask_refusal(struct client *client, const struct request *request, struct verdict *verdict);

/* It is answered without going: if it has waited, nobody else gets its turn. */
void account_forgo(struct client *client);

/* Does a limit delay its next command, and for much longer? */
bool account_waits_long(const struct client *client);

/*
 * Does it owe more bytes than one burst? Then (UNIT_BYTES_IN) the rest of a large request is not read, or
 * (UNIT_BYTES_OUT) its own lane, and a large reply that nobody waits behind. Its link is woken when that is over.
 */
bool account_is_paying(const struct client *client, enum unit unit);

/* `n` of its requests, at most UINT16_MAX, have been refused by this limit: LIMIT TOP is told which one does so. */
static inline void account_count_refused(struct client *client, const struct limit *limit, uint32_t n)
{
    if (client->refused_by != limit->id + 1U || n > (uint32_t)(UINT16_MAX - client->n_refused))
        client_change_refuser(client, limit);
    client->n_refused = (uint16_t)(client->n_refused + n);
}

/*
 * To be called before requests of the client are asked for together, and again once its user may
 * have changed: what comes now is demand of its subject.
 */
void account_begin(struct client *client);

/*
 * `n` request bytes have passed, out of memory it is closed; of a request that was let through with these flags of
 * `counted`.
 */
void account_bytes_in(struct client *client, uint64_t n, uint8_t counted);

/* `n` bytes of replies, messages and pushes have been passed on; the same. */
void account_bytes_out(struct client *client, uint64_t n, uint8_t counted);

/* A call that had these flags of COUNTED has been answered; account_calls_lost: none that is in flight will be. */
void account_answered(struct client *client, uint8_t counted);
void account_calls_lost(struct client *client);

#endif
