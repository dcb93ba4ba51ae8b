/*
 * Where weir dials instead of the addresses that servers and sentinels announce (`upstream-map`): for NAT and
 * containers.
 *
 * A row is applied once: the address that it leads to is not looked for again. No rows lead round. Part of struct
 * config: immutable once the configuration is built, and read by any thread.
 */
#ifndef WEIR_RUN_ADDRESS_MAP_H
#define WEIR_RUN_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"
#include "run/config/address.h"

#define ADDRESS_MAP_MOST 64

struct address_map_row {
    struct address announced, dialled; /* TCP; neither says tls */
};

struct address_map {
    struct address_map_row *rows; /* heap */
    size_t n;
};

/* Add "announced=dialled, ...". False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool address_map_add(struct address_map *map, struct slice value, struct why why);

/* Where to dial instead of this address: itself where there is no row. Of the map, or `announced`. */
const struct address *address_map_find(const struct address_map *map, const struct address *announced);

void address_map_fini(struct address_map *map);

#endif
