/* What happens to a request: refused, queued, held back by a pause, or executed. */
#ifndef WEIR_SIM_REDIS_CALL_H
#define WEIR_SIM_REDIS_CALL_H

#include "tests/sim/redis_state.h"

/* False: a pause holds the request back, to be processed again. */
bool call_process(struct redis_conn *conn, const struct slice *argv, size_t argc);

/* Executes conn->command without checks. */
void call_run(struct redis_conn *conn, const struct slice *argv, size_t argc);

/* Adds the words of "unknown command", up to the length that Redis shows. */
void call_describe_unknown(const struct redis *redis, const struct slice *argv, size_t argc,
                           struct text *text);

/* True if the number of words fits the arity. */
bool call_fits(const struct command *command, size_t argc);

#endif
