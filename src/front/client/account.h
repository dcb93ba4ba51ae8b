/*
 * The gate's decisions on a client's requests, and the charges for what has passed: commands, calls
 * in flight, bytes both ways.
 *
 * A command is charged to the connection's subject (front/client/binding.h), or to the subject that
 * its key names (front/client/meter.h). Connections, calls in flight and bytes are always charged
 * to the connection's subject.
 */
#ifndef WEIR_FRONT_ACCOUNT_H
#define WEIR_FRONT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/binding.h"
#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/gate.h"

/*
 * Asks whether the request may go. GATE_PASS: the request is charged. GATE_WAIT: the link will be
 * woken; ask again then. May close the client.
 */
enum gate account_ask(struct client *client, const struct request *request, struct verdict *verdict);

/*
 * As account_ask, for `n` bytes that are no command (an empty line): only a debt of bytes makes
 * them wait.
 */
enum gate account_ask_idly(struct client *client, size_t n);

/*
 * Before a lane is opened: asks whether the request is refused now. GATE_PASS: no, and nothing was
 * charged; account_ask decides later. Else as account_ask.
 */
enum gate account_ask_refusal(struct client *client, const struct request *request, struct verdict *verdict);

/* weir answers the request instead of sending it: gives up the request's positions in queues. */
void account_forgo(struct client *client);

/* True if a limit delays the next command for more than LONG_NS from now. */
bool account_waits_long(const struct client *client);

/*
 * True if the client's debt of bytes is beyond one burst. For UNIT_BYTES_IN the rest of a large
 * request is then not read. For UNIT_BYTES_OUT the client's private lane is not read, nor is a
 * large reply with nothing behind it. The link is woken when the debt is paid.
 */
bool account_is_paying(const struct client *client, enum unit unit);

/* This limit has refused `n` requests, at most UINT16_MAX: counts them for LIMIT TOP. */
static inline void account_count_refused(struct client *client, const struct limit *limit, uint32_t n)
{
    if (client->refused_by != limit->id + 1U || n > (uint32_t)(UINT16_MAX - client->n_refused))
        client_change_refuser(client, limit);
    client->n_refused = (uint16_t)(client->n_refused + n);
}

/*
 * Call before a run of requests is decided, and again when the user may have changed. Requests then
 * count in the peak rates of the client's subject.
 */
void account_begin(struct client *client);

/*
 * Charges `n` request bytes; `counted`: flags of their request's verdict. Out of memory closes the
 * client.
 */
void account_bytes_in(struct client *client, uint64_t n, uint8_t counted);

/* Charges `n` bytes of replies and messages to the client; else as account_bytes_in. */
void account_bytes_out(struct client *client, uint64_t n, uint8_t counted);

/*
 * A call with these flags of COUNTED is answered. account_calls_lost: no call in flight will be
 * answered.
 */
void account_answered(struct client *client, uint8_t counted);
void account_calls_lost(struct client *client);

#endif
