/*
 * What becomes of a request: refused, queued, held back, or carried out.
 */
#ifndef WEIR_SIM_REDIS_CALL_H
#define WEIR_SIM_REDIS_CALL_H

#include "tests/sim/redis_state.h"

/* False: it is held back by a pause, to be asked again. */
bool call_process(struct redis_conn *conn, const struct slice *argv, size_t argc);

/* Carries out conn->command, whoever has found that it may be. */
void call_run(struct redis_conn *conn, const struct slice *argv, size_t argc);

/* The words of "unknown command", as far as they are shown. */
void call_describe_unknown(const struct redis *redis, const struct slice *argv, size_t argc, struct text *text);

/* Does the number of words fit? */
bool call_fits(const struct command *command, size_t argc);

#endif
