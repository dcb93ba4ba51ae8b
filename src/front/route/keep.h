/*
 * Which requests of a client are kept until they are answered: those on shared lanes of an upstream of several servers.
 *
 * The worker's thread.
 */
#ifndef WEIR_FRONT_KEEP_H
#define WEIR_FRONT_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/command/command.h"
#include "upstream/lane/lane.h"

/*
 * `n` requests of this command are about to be called on the lane. Empty `bytes`: they cannot be sent again. False:
 * out of memory.
 */
__attribute__((warn_unused_result)) bool keep_always(struct client *client, const struct command *command,
                                                     struct slice bytes, uint32_t n);

static inline bool keep(struct client *client, const struct lane *lane, const struct command *command,
                        struct slice bytes, uint32_t n)
{
    return !lane->keeps || keep_always(client, command, bytes, n);
}

/* What a request of this command means for those before it that were not run. */
enum kept_kind keep_kind(const struct command *command);

/* The bytes of a request that does nothing to the client's session; else none: it cannot be sent again. */
struct slice keep_bytes(const struct request *request);

/* Nothing that is under way is waited for any more. */
void keep_nothing(struct client *client);

#endif
