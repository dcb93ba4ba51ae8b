/*
 * Puts weir's own commands into what Redis answers to COMMAND and its subcommands, as if the server had them.
 *
 * What Redis says of its own commands stays as it is, byte for byte. A reply that is not as expected (an error, another
 * shape) is left alone.
 */
#ifndef WEIR_QUOTA_SPLICE_H
#define WEIR_QUOTA_SPLICE_H

#include <stdbool.h>

#include "base/slice.h"
#include "resp/build.h"

#define SPLICE_MAX 8388608 /* bytes of a reply, before and after: 40 times that of COMMAND DOCS */

/*
 * `request` is a whole multibulk request for COMMAND, `reply` the whole frame that answers it; `out` is fresh, and says
 * which version of RESP it is. Without `has_cell` CL.THROTTLE is none of weir's. True: `out` holds what to answer. False: `reply` does; `out` holds nothing of use.
 */
__attribute__((warn_unused_result)) bool splice_command(struct slice request, struct slice reply, bool has_cell,
                                                        struct build *out);

#endif
