/*
 * Asks a node once a second whether connections that do not log in are served, as somebody may set or remove the
 * password of `default` without weir's seeing it; a change ends the node's epoch (node.h).
 *
 * That is settled when a connection is opened, so each question is a new connection. While a password is wanted nothing
 * is asked, unless the node is doubted (node_doubt). One for each node; lives on one loop.
 */
#ifndef WEIR_UPSTREAM_AUTH_PROBE_H
#define WEIR_UPSTREAM_AUTH_PROBE_H

#include "net/loop.h"
#include "upstream/node/node.h"

struct auth_probe;

/* The first question is asked after a second. Out of memory ends the process. */
struct auth_probe *auth_probe_open(struct loop *loop, struct node *node);

/* Asynchronous; frees itself. Safe on NULL. */
void auth_probe_close(struct auth_probe *probe);

#endif
