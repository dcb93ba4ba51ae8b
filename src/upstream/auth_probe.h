/*
 * Asks Redis once a second whom it takes a stranger for, as somebody may set or remove a password behind weir's back.
 *
 * What a connection was taken for when it was opened it stays, so each question is a new connection. Where a password
 * is wanted strangers get nothing, and nothing is asked until somebody comes who expects otherwise. Lives on one loop.
 */
#ifndef WEIR_UPSTREAM_AUTH_PROBE_H
#define WEIR_UPSTREAM_AUTH_PROBE_H

#include "net/loop.h"
#include "upstream/node.h"

struct auth_probe;

/* Out of memory ends the process. */
struct auth_probe *auth_probe_open(struct loop *loop, struct node *node);

/* Asynchronous; frees itself. Safe on NULL. */
void auth_probe_close(struct auth_probe *probe);

#endif
