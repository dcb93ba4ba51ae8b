/*
 * Whether weir may dial an address, and where it dials instead: upstream-map, upstream-allow, and weir's own listeners,
 * which are never dialled.
 *
 * An address is asked about as it was configured or announced (dialling_target), then each socket address that it leads
 * to (dialling_refusal). Made once, then immutable. Main thread.
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
    struct address announced, dialled; /* TCP; neither says tls */
};

/*
 * upstream-map: for NAT and containers. A row is applied once: the address that it leads to is not looked for again. No
 * rows lead round. Part of struct config: immutable once the configuration is built, and read by any thread.
 */
struct address_map {
    struct address_map_row *rows; /* heap */
    size_t n;
};

/* Add "announced=dialled, ...". False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool address_map_add(struct address_map *map, struct slice value, struct why why);

/* Where to dial instead of this address: itself where there is no row. Of the map, or `announced`. */
const struct address *address_map_find(const struct address_map *map, const struct address *announced);

void address_map_fini(struct address_map *map);

struct dialling;

/* Both outlive it. Out of memory ends the process. */
struct dialling *dialling_new(const struct address_map *map, const struct networks *allow);

/* weir listens on this socket. */
void dialling_add_own(struct dialling *dialling, int fd);

/* The address to dial instead of this one, perhaps itself. NULL: none may be; *why (static) says why. */
const struct address *dialling_target(const struct dialling *dialling, const struct address *announced,
                                      const char **why);

/* NULL: it may be dialled. Else why not (static). */
const char *dialling_refusal(const struct dialling *dialling, const struct endpoint *endpoint);

/* Those of the addresses found that may be dialled; with none `why` says why. */
struct resolved dialling_allowed(const struct dialling *dialling, const struct resolved *found);

/*
 * True if a connection to `to` comes to a listener at `own`, also by another address of this machine. `is_dual`: the
 * listener is of IPv6 and takes IPv4 too.
 */
bool dialling_reaches(const struct endpoint *to, const struct endpoint *own, bool is_dual);

void dialling_free(struct dialling *dialling); /* NULL is allowed */

#endif
