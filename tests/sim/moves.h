/*
 * The name of the upstream: which address of Redis the name resolves to, if any, and which
 * addresses answer.
 */
#ifndef WEIR_SIM_MOVES_H
#define WEIR_SIM_MOVES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/resolver.h"

#define MOVES_NAME "redis.sim" /* the only name that is looked up */

void moves_start(void);

/*
 * The name resolves to another address from now on. and_dies: connections to the old address are
 * closed, and new connections are refused.
 */
void moves_away(uint64_t pick, bool and_dies);

/* For `ns` the name does not resolve, or a look-up takes that long. */
void moves_lose_name(uint64_t ns, uint64_t pick);

/* A look-up: how long it takes, and its result at the end. */
uint64_t moves_look_ns(void);
void moves_found(struct resolved *out);

/* True if Redis accepts connections at this address. */
bool moves_answers(const struct sockaddr_storage *to);

#endif
