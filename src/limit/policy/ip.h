/*
 * IP addresses, and short lists of addresses and networks. IPv4-mapped IPv6 (::ffff:192.0.2.1) is IPv4.
 */
#ifndef WEIR_LIMIT_IP_H
#define WEIR_LIMIT_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct sockaddr;

struct ip {
    uint8_t family;    /* 0 none, 4, 6 */
    uint8_t bytes[16]; /* network order; the first 4 for family 4; the rest 0 */
};

#define IP_TEXT_MAX 46 /* the NUL included */

/* Of a socket address; family 0 if that is not IP (a unix socket). */
struct ip ip_of(const struct sockaddr *address);

/* The port of a socket address, in host order; 0 if that is not IP. */
uint16_t ip_port_of(const struct sockaddr *address);

/* "192.0.2.7", "2001:db8::1". */
__attribute__((warn_unused_result)) bool ip_parse(struct slice text, struct ip *ip);

/* The canonical text, NUL-terminated, into IP_TEXT_MAX bytes; returns its length. Not for family 0. */
size_t ip_print(const struct ip *ip, char *out);

/* How many bits an address of its family has: 32, 128, or 0. */
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
