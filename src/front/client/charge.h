/*
 * The gate's decisions on a client's requests, and the charges for commands, calls in flight, and
 * bytes both ways.
 *
 * A command is charged to the connection's subject (front/client/binding.h), or to the subject that
 * its key names (front/client/meter.h). Connections, calls in flight and bytes are always charged
 * to the connection's subject.
 */
#ifndef WEIR_FRONT_CHARGE_H
#define WEIR_FRONT_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/binding.h"
#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/gate.h"

/*
 * Asks the gate whether the request may go. GATE_PASS: the request is charged. GATE_WAIT: the link
 * will be woken, and the caller asks again. May close the client.
 */
enum gate charge_ask(struct client *client, const struct request *request, struct verdict *verdict);

/*
 * As charge_ask, for `n` bytes that are no command (an empty line): the bytes wait only for a debt
 * of bytes.
 */
enum gate charge_ask_bytes(struct client *client, size_t n);

/*
 * Asks, before a lane is opened, whether the request is refused now. GATE_PASS: the request is not
 * refused, nothing is charged, and charge_ask decides later. Other results are as for charge_ask.
 */
enum gate charge_ask_refusal(struct client *client, const struct request *request,
                             struct verdict *verdict);

/* weir answers the request instead of sending it: gives up the request's positions in queues. */
void charge_withdraw(struct client *client);

/* True if a limit delays the next command for more than LONG_NS from now. */
bool charge_waits_long(const struct client *client);

/*
 * True if the client's debt of bytes is beyond one burst. A debt of UNIT_BYTES_IN stops the reading
 * of the rest of a large request. A debt of UNIT_BYTES_OUT stops the reading of the client's
 * private lane, and of a large reply with nothing behind it. The link is woken when the debt is
 * paid.
 */
bool charge_is_in_debt(const struct client *client, enum unit unit);

/* Counts `n` requests that this limit has refused, for LIMIT TOP. `n` is at most UINT16_MAX. */
static inline void charge_count_refused(struct client *client, const struct limit *limit,
                                        uint32_t n)
{
    if (client->refused_by != limit->id + 1U || n > (uint32_t)(UINT16_MAX - client->n_refused))
        client_change_refuser(client, limit);
    client->n_refused = (uint16_t)(client->n_refused + n);
}

/*
 * Call before a run of requests is decided, and again when the user may have changed. Requests then
 * count in the peak rates of the client's subject.
 */
void charge_begin(struct client *client);

/*
 * Charges `n` request bytes; `counted`: flags of their request's verdict. Out of memory closes the
 * client.
 */
void charge_bytes_in(struct client *client, uint64_t n, uint8_t counted);

/*
 * Charges `n` bytes of replies and messages to the client. Parameters and errors as for
 * charge_bytes_in.
 */
void charge_bytes_out(struct client *client, uint64_t n, uint8_t counted);

/* A call with these flags of COUNTED is answered. */
void charge_answered(struct client *client, uint8_t counted);

/* None of the calls in flight will be answered. */
void charge_calls_lost(struct client *client);

#endif
