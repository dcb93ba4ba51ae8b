/*
 * Where the name of the upstream leads: to one of the addresses of the one Redis, or nowhere; and which of them answers.
 */
#ifndef WEIR_SIM_MOVES_H
#define WEIR_SIM_MOVES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/resolver.h"

#define MOVES_NAME "redis.sim" /* all that is ever looked up */

void moves_start(void);

/* The name leads elsewhere from now on; with `and_dies` all connections to where it led are gone, and refused. */
void moves_away(uint64_t pick, bool and_dies);

/* For so long the name cannot be resolved, or a look-up takes so long. */
void moves_lose_name(uint64_t ns, uint64_t pick);

/* A look-up: how long it takes, and what it finds when it is over. */
uint64_t moves_look_ns(void);
void moves_found(struct resolved *out);

/* True if Redis takes connections at this address. */
bool moves_answers(const struct sockaddr_storage *to);

#endif
