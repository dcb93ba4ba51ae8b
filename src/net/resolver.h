/*
 * Looks up a host name on a thread of its own. A look-up that hangs delays neither the loop nor the
 * end of the process.
 *
 * A resolver belongs to one loop, and runs one look-up at a time.
 */
#ifndef WEIR_NET_RESOLVER_H
#define WEIR_NET_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/link.h"
#include "net/loop.h"

#define RESOLVER_MOST 16 /* addresses of one name; further addresses are ignored (chosen) */

struct resolver;

struct resolved {
    struct endpoint endpoints[RESOLVER_MOST]; /* distinct; in the order of the system's resolver */
    unsigned n;                               /* 0: no address; `why` is then set */
    const char *why;                          /* static */
};

/* Returns a resolver of `host`, which is copied. Exits the process if out of memory. */
struct resolver *resolver_new(struct loop *loop, const char *host, uint16_t port,
                              void (*on_resolved)(void *arg, const struct resolved *resolved),
                              void *arg);

/* Starts a look-up; on_resolved follows. Requires that no look-up is in progress. */
void resolver_look(struct resolver *resolver);
bool resolver_is_looking(const struct resolver *resolver);

/*
 * Closes and frees the resolver asynchronously. on_resolved is not called afterwards. Safe on NULL.
 */
void resolver_close(struct resolver *resolver);

#endif
