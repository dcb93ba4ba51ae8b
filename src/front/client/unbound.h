/*
 * A connection before it is bound.
 *
 * Problem: whose connection it is shows only when it logs in. Until then the policy of its address binds it, mostly
 * `default`. Were limits on connections and connects charged at once, that policy would stop applications that are
 * about to log in. Mechanism: those limits are charged when the connection is bound: by a login, by its first command
 * that is no handshake (CMD_HANDSHAKE), or UNBOUND_NS after accept. front/client/binding.h does that. Until then the
 * connection counts for its address (of IPv6: its /64), of which `unauthenticated` may be unbound at a time.
 * Price: one small allocation, and a subject found under a sharded lock, for each connection that is accepted.
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
    struct list in_list;     /* timeouts.unbound */
    uint32_t since_ms;       /* when UNBOUND_NS began; wraps */
    bool is_excused;         /* limits on connects do not count it: it comes again after an outage */
    bool has_paid;           /* the limits on connects of its subject have been charged: by binding_arrive */
    uint8_t counted;         /* COUNTED*: by gate_connect, for `address` */
    struct subject *address; /* held; NULL: it counts for none, since `unauthenticated` is 0 */
};

/*
 * The connection is unbound from now on, and counts for its address. False: too many of its address are unbound, or out
 * of memory it is closed.
 */
__attribute__((warn_unused_result)) bool unbound_begin(struct client *client);

/* A PROXY header has changed its address: it counts for the new one. False: too many of that one are unbound. */
__attribute__((warn_unused_result)) bool unbound_move(struct client *client);

/* It is bound, or closed. Safe on one that is bound already. */
void unbound_end(struct client *client);

/*
 * Around the moment when new rules bind the client: it counts for its address under these, without being asked.
 * unbound_release is called while client_rules are still the old ones.
 */
void unbound_release(struct client *client);
void unbound_retake(struct client *client);

/* The label of the limit that would turn away one more connection of this address before it is bound; NULL: none. */
const char *unbound_refuser(struct front *front, const struct ip *ip);

/*
 * ---- of listeners behind a proxy, which says in a header of the PROXY protocol which address it
 * speaks for ----
 *
 * Until that header is whole nothing is charged, and none of its bytes is a request. From then on
 * the client's address is the one announced. A proxy that is not in proxy-protocol-from is not
 * listened to.
 */

/*
 * It has just connected, and waits for its header. False: it is not to be believed, or out of
 * memory; it is closed.
 */
__attribute__((warn_unused_result)) bool proxied_begin(struct client *client);

/* True if it waits for the header. */
bool proxied_waits(const struct client *client);

/*
 * While it does. Returns how many of the bytes were the header's. When the header has ended in them the client's
 * address is the announced one, and it is yet to be admitted. It may be closed.
 */
size_t proxied_take(struct client *client, const char *data, size_t n);

#endif
