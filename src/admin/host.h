/*
 * Checks the Host headers of requests to the HTTP server for operators.
 *
 * A foreign page in an operator's browser can make its own host name resolve to weir's address (DNS
 * rebinding). Without a check the page could read weir's answers. Requests of the foreign page
 * carry the foreign name in Host. weir therefore accepts only addresses and configured names.
 */
#ifndef WEIR_ADMIN_HOST_H
#define WEIR_ADMIN_HOST_H

#include <stdbool.h>

#include "base/slice.h"

/*
 * True if `host` is an address, "localhost" or one of `names` (separated by commas). A port and a
 * final dot are allowed. Case does not matter.
 */
bool host_is_known(struct slice host, struct slice names);

/* True if `name` is a valid host name. */
bool host_is_name(struct slice name);

#endif
