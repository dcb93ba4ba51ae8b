/*
 * A short list of addresses and networks: is this one among them?
 */
#ifndef WEIR_LIMIT_NETWORKS_H
#define WEIR_LIMIT_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/ip.h"

#define NETWORKS_MAX 64

struct network {
    struct ip ip; /* no bit set beyond the prefix */
    uint8_t prefix;
};

struct networks {
    struct network at[NETWORKS_MAX];
    uint8_t count;
    bool has_unix; /* connections over unix sockets are among them */
};

enum network_fault { NETWORK_GOOD, NETWORK_NO_ADDRESS, NETWORK_BAD_PREFIX, NETWORK_HOST_BITS };

/*
 * Parse "192.0.2.7", "10.1.0.0/16" or "2001:db8::/32". With NETWORK_BAD_PREFIX network->ip is the address; with
 * NETWORK_HOST_BITS (bits set beyond the prefix) *network is what was probably meant, without those bits.
 */
__attribute__((warn_unused_result)) enum network_fault network_parse(struct network *network, struct slice text);
bool network_holds(const struct network *network, const struct ip *ip);

/* Add an address, a network or "unix". False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool networks_add(struct networks *networks, struct slice text, char *why,
                                                      size_t why_size);

static inline bool networks_are_none(const struct networks *networks)
{
    return networks->count == 0 && !networks->has_unix;
}

/* Is the address in the list? One of family 0 is a unix socket's. */
bool networks_hold(const struct networks *networks, const struct ip *ip);

#endif
