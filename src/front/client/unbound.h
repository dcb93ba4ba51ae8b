/*
 * A connection is unbound until its policy's limits on connections are charged.
 *
 * Problem: only a login tells the subject of a connection. Until the login the policy of its
 * address applies, mostly `default`. If limits on connections and connects were charged at once,
 * that policy would stop applications that are about to log in.
 *
 * Mechanism: limits on connections are charged when the connection is bound
 * (front/client/binding.h). Limits on connects are charged then, too. Exception: if a policy
 * matches by address or TLS name, binding_arrive charges its limits on connects earlier. A
 * connection is bound by a login, by the first command without CMD_HANDSHAKE, or UNBOUND_NS after
 * accept. An unbound connection counts for its address (of IPv6: its /64). `unauthenticated` bounds
 * the unbound connections of one address.
 *
 * Price: one small allocation, and a look-up of a subject under a sharded lock, for each accepted
 * connection.
 *
 * Operators' connections are bound from the beginning.
 */
#ifndef WEIR_FRONT_UNBOUND_H
#define WEIR_FRONT_UNBOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "front/client/client.h"

#define UNBOUND_NS (10 * NS_PER_S)

/* client.unbound */
struct unbound {
    struct client *client;
    struct list in_list; /* in timeouts.unbound */
    uint32_t since_ms;   /* when UNBOUND_NS began; wraps */
    /* the connection replaces one that an outage closed: limits on connects do not count it */
    bool is_excused;
    /* limits on connects of the subject have been charged, by binding_arrive */
    bool has_paid;
    uint8_t counted;         /* set of COUNTED*: limits that count the connection for `address` */
    struct subject *address; /* one reference; NULL: `unauthenticated` is 0 */
};

/*
 * The connection is unbound from now on, and counts for its address. False: the address has too
 * many unbound connections, or memory is out and the client is closed.
 */
__attribute__((warn_unused_result)) bool unbound_begin(struct client *client);

/*
 * A PROXY header has changed the address: counts the connection for the new address. False: the new
 * address has too many unbound connections.
 */
__attribute__((warn_unused_result)) bool unbound_move(struct client *client);

/*
 * Ends the unbound state of a connection that is now bound or closed. Does nothing for a bound
 * connection.
 */
void unbound_end(struct client *client);

/*
 * The client is about to get new rules: call before client_rules changes, and call unbound_retake
 * afterwards.
 */
void unbound_release(struct client *client);

/*
 * Counts the connection for its address under the new rules. The new rules do not refuse the
 * connection.
 */
void unbound_retake(struct client *client);

/*
 * The label of the limit that would refuse one more unbound connection of this address; NULL: no
 * limit would.
 */
const char *unbound_refuser(struct front *front, const struct ip *ip);

/*
 * ---- PROXY headers ----
 *
 * A listener behind a proxy expects a PROXY header that tells the address of the client. Until the
 * header is complete nothing is charged, and no byte is a request. Afterwards the client has the
 * address of the header. A connection of a proxy outside proxy-protocol-from is closed.
 */

/*
 * Begins to wait for the header, at accept. False: the peer is outside proxy-protocol-from, or out
 * of memory; the client is closed.
 */
__attribute__((warn_unused_result)) bool proxied_begin(struct client *client);

/* True if the header is not complete. */
bool proxied_waits(const struct client *client);

/*
 * Only while proxied_waits. Returns how many of the bytes belong to the header. The last byte of
 * the header changes the client's address; the caller then admits the client. May close the client.
 */
size_t proxied_take(struct client *client, const char *data, size_t n);

#endif
