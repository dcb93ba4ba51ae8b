/*
 * From a configured address to one that the system understands.
 */
#ifndef WEIR_RUN_ENDPOINT_H
#define WEIR_RUN_ENDPOINT_H

#include "net/link.h"
#include "run/address.h"

/* NULL, or why the address has no endpoint (static). A host's name is looked up, which may take its time. */
__attribute__((warn_unused_result)) const char *endpoint_resolve(const struct address *address, struct endpoint *out);

#define ENDPOINT_TEXT 160

/* In numbers: "127.0.0.1:6379", "[::1]:6379" or "unix:/path". */
void endpoint_print(const struct endpoint *endpoint, char out[ENDPOINT_TEXT]);

/* The port of an endpoint that is not a unix socket. */
uint16_t endpoint_port(const struct endpoint *endpoint);

#endif
