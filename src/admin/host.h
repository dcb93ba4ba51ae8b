/*
 * By which names HTTP for operators may be asked for.
 *
 * A page from elsewhere, open in an operator's browser, can have its own name resolved to weir's address (DNS rebinding),
 * and then reads what weir answers as its own. Its name is in the Host of what it asks; an address is nobody's name.
 */
#ifndef WEIR_ADMIN_HOST_H
#define WEIR_ADMIN_HOST_H

#include <stdbool.h>

#include "base/slice.h"

/*
 * Is this Host an address, "localhost" or one of `names`, which are separated by commas? With or without a port, in any
 * case, with or without the dot at the end.
 */
bool host_is_known(struct slice host, struct slice names);

/* Can it be one of the names? */
bool host_is_name(struct slice name);

#endif
