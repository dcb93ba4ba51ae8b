/*
 * The header by which a proxy in front says whom a connection comes from: the PROXY protocol, version 1 (a line of text)
 * or 2 (binary). A scanner: no I/O, nothing allocated, the same answer however its input is cut.
 *
 * See https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt. Whether the sender may be believed is the caller's
 * affair.
 */
#ifndef WEIR_NET_PROXY_HEADER_H
#define WEIR_NET_PROXY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "limit/ip.h"
#include "resp/scan.h"

#define PROXY_LINE_MAX 107   /* a header of version 1, its CRLF included */
#define PROXY_BLOCK_MAX 4096 /* of version 2, what follows the first 16 bytes; what it announces comes first */

/* Zeroed at the beginning. */
struct proxy_header {
    uint8_t filled; /* of bytes */
    uint8_t wanted; /* version 2: bytes that are kept, once the length is known */
    uint16_t left;  /* and those after them, which are skipped */
    char bytes[PROXY_LINE_MAX];
    struct ip ip;    /* when it is whole; family 0: the connection is the sender's own, or its address is no IP */
    uint16_t port;   /* with ip */
    const char *why; /* when it is bad: a clause about the connection, static */
};

/* SCAN_FRAME: the header is whole, and what follows the first *used bytes is the client's. */
enum scan_result proxy_header_scan(struct proxy_header *header, const char *data, size_t n, size_t *used);

#endif
