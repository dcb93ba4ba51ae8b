/*
 * Refusals because of the server's state: memory limit, broken disk, missing replicas, replica
 * role, loading.
 */
#ifndef WEIR_SIM_REDIS_DENY_H
#define WEIR_SIM_REDIS_DENY_H

#include "tests/sim/redis_state.h"

/*
 * Why conn->command is refused now; NULL: not refused. deny_write is checked before the error "only
 * (P)SUBSCRIBE ...", deny_any after that error.
 */
const char *deny_write(const struct redis_conn *conn);
const char *deny_any(const struct redis_conn *conn);

/*
 * The equivalent for a command of a script, which may have written already. The error begins with a
 * dash.
 */
const char *deny_in_script(const struct redis_conn *conn, bool has_written);
/* True if the master is away, and replica-serve-stale-data is no. */
bool deny_is_stale(const struct redis *redis);
const char *deny_stale_words(const struct redis *redis);

#endif
