/*
 * Connections that weir has closed because Redis was away, by address: as many come again without counting in
 * `connects`.
 *
 * Problem: an outage of a second makes all clients connect again at once, which a limit on `connects` would refuse.
 * Mechanism: each such connection that had been counted leaves a permit to its address, good for a time that the caller
 * gives. Only closings that go with an outage count: a client can have its own connection to Redis closed at any time.
 * Price: a fixed table under a mutex, which is looked at only within that time. Where the table is full, the permits of
 * the address that has waited longest are lost. Any thread.
 */
#ifndef WEIR_LIMIT_RECONNECTS_H
#define WEIR_LIMIT_RECONNECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "limit/policy/ip.h"

#define RECONNECTS_SLACK_NS (2 * NS_PER_S) /* between a closing and a failed dial of the same outage, either way */

struct reconnects;

/* Out of memory ends the process. */
struct reconnects *reconnects_new(struct hash_key key);
void reconnects_free(struct reconnects *reconnects);

/* A connection of this address was closed for want of Redis. */
void reconnects_note(struct reconnects *reconnects, const struct ip *ip, uint64_t now_ns);

/*
 * True if one more connection of the address is not to be counted. `away_ns`: when Redis was found away last; 0: never.
 */
bool reconnects_take(struct reconnects *reconnects, const struct ip *ip, uint64_t now_ns, uint64_t within_ns,
                     uint64_t away_ns);

#endif
