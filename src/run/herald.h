/*
 * Tells the service manager how weir stands: once that it is ready, in the sense of /readyz, and in words whenever that
 * changes.
 */
#ifndef WEIR_RUN_HERALD_H
#define WEIR_RUN_HERALD_H

#include <stdbool.h>

#include "run/census.h"

#define HERALD_ROOM 640

struct herald {
    bool has_been_ready;
    char told[HERALD_ROOM];
};

/* For every look at how it stands. True: it is ready now for the first time. */
bool herald_tell(struct herald *herald, const struct census *census);

/* Around a reload. */
void herald_reloading(const struct herald *herald);
void herald_reloaded(const struct herald *herald);

#endif
