/*
 * What the state of the server forbids: too little memory, a disk that fails, no replicas, no master, data to load.
 */
#ifndef WEIR_SIM_REDIS_DENY_H
#define WEIR_SIM_REDIS_DENY_H

#include "tests/sim/redis_state.h"

/* Why conn->command may not be carried out now; NULL: it may. What is looked at before "only (P)SUBSCRIBE ..." ... */
const char *deny_write(const struct redis_conn *conn);
/* ... and what is looked at behind it. */
const char *deny_any(const struct redis_conn *conn);

/* The same of what a script calls, which may have written already; with a dash before its code. */
const char *deny_in_script(const struct redis_conn *conn, bool has_written);
bool deny_is_stale(const struct redis *redis); /* its master is away, and it does not serve without */
const char *deny_stale_words(const struct redis *redis);

#endif
