/*
 * How long a client's commands take, and which of them enter the slow log.
 *
 * A command begins when it becomes first in its connection's queue. The command begins when weir
 * has read it, or when weir has sent or answered the command before it. weir does not measure
 * commands that may block in Redis, and commands with an end that weir cannot see.
 */
#ifndef WEIR_FRONT_TIMING_H
#define WEIR_FRONT_TIMING_H

#include <stdint.h>

#include "front/client/client.h"
#include "limit/command/command.h"
#include "quota/decision.h"
#include "upstream/lane/calls.h"

/*
 * Returns the tag of the next request's call. Bits from 32 on: the waits. Bits 16 to 31: the id of
 * the command. Bits 0 to 15: the argument count.
 */
static inline uint64_t timing_tag(const struct client *client, const struct command *command,
                                  uint32_t argc)
{
    return (uint64_t)client->front->slow.waits << 32 | (uint32_t)command->id << 16 |
           (argc < UINT16_MAX ? argc : UINT16_MAX);
}

/*
 * The command of a tag. If the command table has been replaced since the call, the result may be a
 * wrong command or the unknown command.
 */
static inline const struct command *timing_command(const struct front *front, uint64_t tag)
{
    size_t id = tag >> 16 & UINT16_MAX;
    return command_table_row(front->commands, id < command_table_count(front->commands) ? id : 0);
}

/* The argument count of a tag, at most UINT16_MAX. */
static inline uint32_t timing_argc(uint64_t tag)
{
    return tag & UINT16_MAX;
}

/* As lane_user_ops.on_timed: Redis has answered n requests of the client. */
void timing_answered(struct lane_user *lane_user, const struct call *call, uint32_t n);

/* As timing_answered, for calls on this lane of any of the client's lane users. */
void timing_note(struct client *client, const struct lane *lane, const struct call *call,
                 uint32_t n);

/*
 * A returned request (again.h) is answered without being sent again: measures the request by the
 * times of its first call.
 */
void timing_not_sent(struct client *client, uint64_t tag, uint64_t arrived_ns, uint32_t waited_us);

/* Measures the client's next n requests, all with this tag, which weir itself has answered. */
void timing_local(struct client *client, uint64_t tag, uint32_t n);

/* As loop.on_written: the replies of this iteration have been written. */
void timing_written(struct loop *loop);

/* Measures a LIMIT command that has been decided, unless call->arrived_ns is 0. */
void timing_decided(struct client *client, const struct decision *call);

/*
 * The next request has waited for its fair share since lane_user.arrived_ns, and may go now. Counts
 * the wait for the worker, the subject and LIMIT TOP. The slow log shows the wait with the client's
 * next calls.
 */
void timing_share_waited(struct client *client);

#endif
