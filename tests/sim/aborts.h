/*
 * Clients that send requests and reset their connection at any moment. The reset comes before weir
 * accepts the connection, while a reply streams, or behind a request. Requests before the reset
 * include AUTH, CLIENT REPLY OFF and blocking commands.
 *
 * These clients read no replies, so replies are not judged. The model of Redis counts the commands
 * that it executes for each address. The counts are judged against the limits of ABORTS_POLICY.
 * hangs.h covers times at which Redis hangs.
 *
 * Laws, for each address: commands, calls in flight, bytes that Redis sends, and logins that Redis
 * decides stay within the limits. Where newcomers share a subject, an address has a second funnel
 * for calls, bytes and logins.
 */
#ifndef WEIR_SIM_ABORTS_H
#define WEIR_SIM_ABORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The policy of these clients. A section of each configuration of the run. */
#define ABORTS_POLICY                                                                                                \
    "[policy aborts]\nmatch = ip:10.0.3.0/24\nall = 100/s burst 10\ninflight = 4\nbytes-out = 200kb/s burst 100kb\n" \
    "auth-failures = 5/m\n"

void aborts_start(void);
void aborts_stop(void);

/* The model of Redis executes this command; server_answering() tells where its answer begins. */
void aborts_carried_out(const struct slice *argv, size_t argc);
/* The answer to the command of aborts_carried_out has n bytes. */
void aborts_answered(uint64_t n);

/* The run settles or stops: no more requests are sent. */
void aborts_end(void);

#endif
