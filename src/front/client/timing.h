/*
 * How long a client's commands take: where each begins and ends, and which of them belong in the slow log.
 *
 * A command begins when it is the next of its connection: when it was read, or when what came before it let it. What
 * may wait in Redis, and what weir cannot tell the end of, is not measured.
 */
#ifndef WEIR_FRONT_TIMING_H
#define WEIR_FRONT_TIMING_H

#include <stdint.h>

#include "front/client/client.h"
#include "limit/command/command.h"
#include "quota/decision.h"
#include "upstream/lane/calls.h"

/* The tag of the call of the client's next request: the set of what it waited for, its command, its number of words. */
static inline uint64_t timing_tag(const struct client *client, const struct command *command, uint32_t argc)
{
    return (uint64_t)client->front->slow.waits << 32 | (uint32_t)command->id << 16 |
           (argc < UINT16_MAX ? argc : UINT16_MAX);
}

/* The command of a tag; another one's, or the unknown one's, if the command table has been replaced since. */
static inline const struct command *timing_command(const struct front *front, uint64_t tag)
{
    size_t id = tag >> 16 & UINT16_MAX;
    return command_table_row(front->commands, id < command_table_count(front->commands) ? id : 0);
}

/* Redis has answered n of the client's requests: for rider_ops. */
void timing_answered(struct rider *rider, const struct call *call, uint32_t n);

/* The same of calls on this lane, by whichever of the client's riders. */
void timing_note(struct client *client, const struct lane *lane, const struct call *call, uint32_t n);

/* A request of the client that was to be sent again (again.h) is answered without that; measured as its call was. */
void timing_not_sent(struct client *client, uint64_t tag, uint64_t arrived_ns, uint32_t waited_us);

/* weir has answered the client's next n requests, which all have this tag. */
void timing_local(struct client *client, uint64_t tag, uint32_t n);

/* As loop.on_written: requests that were answered in this iteration have been written. */
void timing_written(struct loop *loop);

/* A LIMIT command has been decided; measured unless its arrived_ns is 0. */
void timing_decided(struct client *client, const struct decision *call);

/*
 * A wait of a client for its fair share (front/route/fair_share.h) is counted when it ends: for the worker, for its
 * subject, and for LIMIT TOP. Its next calls are known to have waited, for the slow log.
 */

/* Its next request may go at last: it has waited since rider.arrived_ns. */
void timing_share_waited(struct client *client);

#endif
