/*
 * Addresses as a configuration writes them (host:port, [v6]:port or unix:/path; tls: in front of the first two), and as
 * the system has them.
 */
#ifndef WEIR_RUN_ADDRESS_H
#define WEIR_RUN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "net/link.h"

struct address {
    char *host; /* heap; a path when is_unix */
    uint16_t port;
    bool is_unix;
    bool is_tls;
};

/* Port 0 is legal only where the kernel may choose one. False: `why` says what is wrong, and *address is untouched. */
__attribute__((warn_unused_result)) bool address_parse(struct address *address, struct slice text, bool may_choose_port,
                                                       char *why, size_t why_size);
/* The same where there can be no unix socket: host:port or [v6]:port. */
__attribute__((warn_unused_result)) bool address_parse_tcp(struct address *address, struct slice text,
                                                           bool may_choose_port, char *why, size_t why_size);

/* Is it written as one of a unix socket? */
bool address_is_unix(struct slice text);

bool address_eq(const struct address *a, const struct address *b);
void address_fini(struct address *address);

/* "127.0.0.1:6379", "tls:[::1]:6379" or "unix:/path" into out. */
#define ADDRESS_TEXT 512
void address_print(const struct address *address, char *out, size_t size);

/* NULL, or why the address has no endpoint (static). A host's name is looked up, which may take its time. */
__attribute__((warn_unused_result)) const char *address_resolve(const struct address *address, struct endpoint *out);

#define ENDPOINT_TEXT 160

/* In numbers: "127.0.0.1:6379", "[::1]:6379" or "unix:/path". */
void endpoint_print(const struct endpoint *endpoint, char out[ENDPOINT_TEXT]);

/* The port of an endpoint that is not a unix socket. */
uint16_t endpoint_port(const struct endpoint *endpoint);

#endif
