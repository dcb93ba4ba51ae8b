/*
 * Whether weir may dial an address, and which address it dials instead: upstream-map,
 * upstream-allow, and weir's own listeners, which are never dialled.
 *
 * dialling_target maps an address as configured or announced. dialling_refusal then checks each
 * socket address that the result resolves to. Made once, then immutable. Main thread.
 */
#ifndef WEIR_RUN_DIALLING_H
#define WEIR_RUN_DIALLING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/ip.h"
#include "net/link.h"
#include "net/resolver.h"
#include "run/config/address.h"

#define ADDRESS_MAP_MOST 64

struct address_map_row {
    struct address announced, dialled; /* TCP addresses; neither has tls: before it */
};

/*
 * upstream-map: for NAT and containers. A row is applied once: its result is not looked up again.
 * No rows form a circle. Part of struct config: immutable once the configuration is built, and read
 * by any thread.
 */
struct address_map {
    struct address_map_row *rows; /* heap */
    size_t n;
};

/* Adds "announced=dialled, ...". False: `why` has the error. */
__attribute__((warn_unused_result)) bool address_map_add(struct address_map *map,
                                                         struct slice value, struct why why);

/* Returns the address to dial: of the map, or `announced` if there is no row. */
const struct address *address_map_find(const struct address_map *map,
                                       const struct address *announced);

void address_map_fini(struct address_map *map);

struct dialling;

/* `map` and `allow` must outlive the result. Out of memory ends the process. */
struct dialling *dialling_new(const struct address_map *map, const struct networks *allow);

/* Adds a socket that weir listens on. */
void dialling_add_own(struct dialling *dialling, int fd);

/*
 * Returns the address to dial for `announced`, often the same address. NULL: no address may be
 * dialled; *why (static) is the reason.
 */
const struct address *dialling_target(const struct dialling *dialling,
                                      const struct address *announced, const char **why);

/* Returns NULL if the endpoint may be dialled, else the reason (static). */
const char *dialling_refusal(const struct dialling *dialling, const struct endpoint *endpoint);

/* Returns the endpoints of `found` that may be dialled. If none, the result's `why` tells. */
struct resolved dialling_allowed(const struct dialling *dialling, const struct resolved *found);

/*
 * True if a connection to `to` comes to a listener at `own`, also by another address of this
 * machine. `is_dual`: the listener is of IPv6 and takes IPv4 too.
 */
bool dialling_reaches(const struct endpoint *to, const struct endpoint *own, bool is_dual);

void dialling_free(struct dialling *dialling); /* NULL is allowed */

#endif
