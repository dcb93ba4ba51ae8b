/*
 * An IP address; IPv4-mapped IPv6 (::ffff:192.0.2.1) is IPv4.
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

#endif
