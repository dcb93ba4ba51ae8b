/*
 * Which Host headers the HTTP server for operators accepts.
 *
 * A foreign page in an operator's browser can make its own host name resolve to weir's address (DNS rebinding), and may
 * then read weir's answers. Its requests have its name in Host; so only addresses and configured names are accepted.
 */
#ifndef WEIR_ADMIN_HOST_H
#define WEIR_ADMIN_HOST_H

#include <stdbool.h>

#include "base/slice.h"

/*
 * Is `host` an address, "localhost" or one of `names` (separated by commas)? With or without a port and a final dot;
 * case does not matter.
 */
bool host_is_known(struct slice host, struct slice names);

/* Is it a valid host name? */
bool host_is_name(struct slice name);

#endif
