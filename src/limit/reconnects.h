/*
 * Connections that weir closed because Redis was away, by address. For each of these connections,
 * one new connection of the same address does not count in `connects`.
 *
 * Problem: after an outage of a second all clients connect again at once, which a limit on
 * `connects` would refuse. Mechanism: each counted connection that weir closes because Redis is
 * away leaves a permit to its address. The caller gives the life of a permit. Only a close during
 * an outage counts: a client can have its own connection to Redis closed at any time.
 *
 * Price: a fixed table under a mutex, read only within the life of a permit. When the table is
 * full, the address with the oldest close loses its permits. Any thread.
 */
#ifndef WEIR_LIMIT_RECONNECTS_H
#define WEIR_LIMIT_RECONNECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "limit/policy/ip.h"

/* chosen: between a close and a failed dial of one outage, in either order */
#define RECONNECTS_SLACK_NS (2 * NS_PER_S)

struct reconnects;

/* Aborts the process if memory is out. */
struct reconnects *reconnects_new(struct hash_key key);
void reconnects_free(struct reconnects *reconnects);

/* Notes that weir closed a connection of this address for want of Redis. */
void reconnects_note(struct reconnects *reconnects, const struct ip *ip, uint64_t now_ns);

/*
 * True if one more connection of the address is not counted; uses one permit. `within_ns`: life of
 * a permit. `away_ns`: when Redis was last found away; 0: never.
 */
bool reconnects_take(struct reconnects *reconnects, const struct ip *ip, uint64_t now_ns,
                     uint64_t within_ns, uint64_t away_ns);

#endif
