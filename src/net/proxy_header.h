/*
 * Reads the header of the PROXY protocol, version 1 (a line of text) or 2 (binary). In the header a
 * load balancer reports the addresses of the client's connection. A scanner: no I/O, no allocation,
 * the same result however the input is split.
 *
 * See https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt. The caller decides whether to
 * trust the sender.
 */
#ifndef WEIR_NET_PROXY_HEADER_H
#define WEIR_NET_PROXY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "limit/policy/ip.h"
#include "resp/scan.h"

/* length of a version 1 header including CRLF (the protocol's limit) */
#define PROXY_LINE_MAX 107
/* version 2: most bytes after the first 16; the addresses come first (chosen) */
#define PROXY_BLOCK_MAX 4096

/* Must be zeroed before the first byte. */
struct proxy_header {
    uint8_t filled; /* bytes in `bytes` */
    uint8_t wanted; /* version 2: number of bytes to keep; 0 until the length is known */
    uint16_t left;  /* version 2: number of bytes to skip after the kept bytes */
    char bytes[PROXY_LINE_MAX];
    /* after SCAN_FRAME: the client's address; family 0: the balancer's own connection, or not IP */
    struct ip ip;
    uint16_t port; /* port of `ip` */
    /* after SCAN_FRAME: the address the client connected to; family 0: not reported */
    struct ip to;
    uint16_t to_port;
    /* after SCAN_BAD: the error, a clause in which "its" means the connection; static */
    const char *why;
};

/*
 * Returns SCAN_FRAME when the header is complete. Bytes after the first *used come from the client.
 */
enum scan_result proxy_header_scan(struct proxy_header *header, const char *data, size_t n,
                                   size_t *used);

#endif
