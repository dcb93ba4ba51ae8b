/*
 * Reads the header of the PROXY protocol, in which a load balancer says where a connection comes from: version 1 (a
 * line of text) or 2 (binary). A scanner: no I/O, nothing allocated, the same result however the input is cut.
 *
 * See https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt. Whether to believe the sender is the caller's
 * decision.
 */
#ifndef WEIR_NET_PROXY_HEADER_H
#define WEIR_NET_PROXY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "limit/policy/ip.h"
#include "resp/scan.h"

#define PROXY_LINE_MAX 107   /* a header of version 1, its CRLF included */
#define PROXY_BLOCK_MAX 4096 /* version 2: bytes behind the first 16, addresses first */

/* Zeroed before the first byte. */
struct proxy_header {
    uint8_t filled; /* how much of `bytes` */
    uint8_t wanted; /* version 2: how many bytes to keep, once the length is known */
    uint16_t left;  /* version 2: how many bytes behind those to skip */
    char bytes[PROXY_LINE_MAX];
    struct ip ip;  /* after SCAN_FRAME, the client's address; family 0: the balancer's own connection, or not IP */
    uint16_t port; /* of ip */
    struct ip to;  /* after SCAN_FRAME, where the client connected; family 0: not told */
    uint16_t to_port;
    const char *why; /* after SCAN_BAD: what is wrong, a clause about the connection; static */
};

/* SCAN_FRAME: the header is complete; what follows the first *used bytes is sent by the client. */
enum scan_result proxy_header_scan(struct proxy_header *header, const char *data, size_t n, size_t *used);

#endif
