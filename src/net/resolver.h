/*
 * Looks a host's name up, on a thread of its own: a look-up that hangs delays neither the loop nor the end of the
 * process.
 *
 * One look-up at a time. Lives on one loop.
 */
#ifndef WEIR_NET_RESOLVER_H
#define WEIR_NET_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/link.h"
#include "net/loop.h"

#define RESOLVER_MOST 16 /* addresses of one name; what comes behind them is not looked at */

struct resolver;

struct resolved {
    struct endpoint endpoints[RESOLVER_MOST]; /* no two are the same; in the order of the system's resolver */
    unsigned n;                               /* 0: there is none, and `why` says why */
    const char *why;                          /* static */
};

/* The host is copied. Out of memory ends the process. */
struct resolver *resolver_new(struct loop *loop, const char *host, uint16_t port,
                              void (*on_resolved)(void *arg, const struct resolved *resolved), void *arg);

/* on_resolved follows, later. Only while none is under way. */
void resolver_look(struct resolver *resolver);
bool resolver_is_looking(const struct resolver *resolver);

/* Asynchronous; frees itself. on_resolved does not follow. Safe on NULL. */
void resolver_close(struct resolver *resolver);

#endif
