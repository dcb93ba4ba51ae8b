/*
 * What is known of a client that policies match and identities are made of.
 */
#ifndef WEIR_FRONT_FACTS_H
#define WEIR_FRONT_FACTS_H

#include "front/client/client.h"
#include "limit/policy/identity.h"

/* Now. */
struct facts facts_of(const struct client *client);

/* What was known when it came, and nothing that it says can change. */
struct facts facts_on_arrival(const struct client *client);

#endif
