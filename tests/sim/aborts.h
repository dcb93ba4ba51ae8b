/*
 * Clients that say something and reset their connection, at any moment: before weir accepts it,
 * behind a request, behind AUTH, behind CLIENT REPLY OFF or a blocking command, while a reply
 * streams. They hear nothing, so nothing that they hear is judged: the model of Redis counts what
 * it carries out for each of their addresses, against the limits of a policy of their own. Where
 * Redis hangs now and then: hangs.h.
 *
 * Laws, for each address, of its commands, calls in flight, bytes that Redis sends, and logins
 * that Redis is asked about. Where newcomers share a subject, an address has a second funnel for
 * calls, bytes and logins.
 */
#ifndef WEIR_SIM_ABORTS_H
#define WEIR_SIM_ABORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The section that binds them, for each configuration of the run. */
#define ABORTS_POLICY                                                                                                  \
    "[policy aborts]\nmatch = ip:10.0.3.0/24\nall = 100/s burst 10\ninflight = 4\nbytes-out = 200kb/s burst 100kb\n"   \
    "auth-failures = 5/m\n"

void aborts_start(void);
void aborts_stop(void);

/* Redis carries this out; its answer begins where server_answering says. */
void aborts_carried_out(const struct slice *argv, size_t argc);
/* And so many bytes it has. */
void aborts_answered(uint64_t n);

/* The settling or stopping of the run: nothing more is said. */
void aborts_end(void);

#endif
