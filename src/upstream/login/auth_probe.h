/*
 * Probes a node once a second to learn whether connections without a login are served. An operator
 * may set or remove the password of `default` unnoticed by weir; a change ends the node's auth
 * generation (node.h).
 *
 * Redis decides whether to serve a connection when the connection is opened: each probe is a new
 * connection. While a password is required, the node is probed only if doubted (node_doubt). Each
 * node has one probe, on one event loop.
 */
#ifndef WEIR_UPSTREAM_AUTH_PROBE_H
#define WEIR_UPSTREAM_AUTH_PROBE_H

#include "net/loop.h"
#include "upstream/node/node.h"

struct auth_probe;

/* The first probe is sent after a second. Out of memory ends the process. */
struct auth_probe *auth_probe_open(struct loop *loop, struct node *node);

/* Closes and frees the probe asynchronously. NULL is allowed. */
void auth_probe_close(struct auth_probe *probe);

#endif
