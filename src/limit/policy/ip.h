/*
 * IP addresses, and short lists of addresses and networks. IPv4-mapped IPv6 (::ffff:192.0.2.1)
 * counts as IPv4.
 */
#ifndef WEIR_LIMIT_IP_H
#define WEIR_LIMIT_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct sockaddr;

struct ip {
    uint8_t family;    /* 4 or 6; 0: none */
    uint8_t bytes[16]; /* network order; family 4 uses the first 4; the rest is 0 */
};

#define IP_TEXT_MAX 46 /* with the NUL */

/* The IP of a socket address; family 0 if the address is not IP (a unix socket). */
struct ip ip_of(const struct sockaddr *address);

/* The port of a socket address, in host order; 0 if the address is not IP. */
uint16_t ip_port_of(const struct sockaddr *address);

/* "192.0.2.7", "2001:db8::1". */
__attribute__((warn_unused_result)) bool ip_parse(struct slice text, struct ip *ip);

/*
 * Writes the canonical text, NUL-terminated, into IP_TEXT_MAX bytes. Returns the length of the
 * text. Not for family 0.
 */
size_t ip_print(const struct ip *ip, char *out);

/* Number of bits of an address of its family: 32, 128, or 0. */
unsigned ip_bits(const struct ip *ip);

/* The address with all but the first `prefix` bits cleared. */
struct ip ip_network(const struct ip *ip, unsigned prefix);

bool ip_eq(const struct ip *a, const struct ip *b);

/* ---- lists of addresses and networks ---- */

#define NETWORKS_MAX 64

struct network {
    struct ip ip; /* no bit set beyond the prefix */
    uint8_t prefix;
};

struct networks {
    struct network at[NETWORKS_MAX];
    uint8_t count;
    bool has_unix; /* the list includes connections over unix sockets */
};

enum network_fault { NETWORK_GOOD, NETWORK_NO_ADDRESS, NETWORK_BAD_PREFIX, NETWORK_HOST_BITS };

/*
 * Parses "192.0.2.7", "10.1.0.0/16" or "2001:db8::/32". On NETWORK_BAD_PREFIX network->ip is the
 * address. On NETWORK_HOST_BITS (bits set beyond the prefix) *network is the network with these
 * bits cleared.
 */
__attribute__((warn_unused_result)) enum network_fault network_parse(struct network *network,
                                                                     struct slice text);
bool network_holds(const struct network *network, const struct ip *ip);

/* Adds an address, a network or "unix". False: `why` holds the reason. */
__attribute__((warn_unused_result)) bool networks_add(struct networks *networks, struct slice text,
                                                      char *why, size_t why_size);

static inline bool networks_are_none(const struct networks *networks)
{
    return networks->count == 0 && !networks->has_unix;
}

/* True if the list holds the address. Family 0 stands for a unix socket. */
bool networks_hold(const struct networks *networks, const struct ip *ip);

#endif
