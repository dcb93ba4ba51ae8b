/*
 * What a command reads from its arguments; if it cannot be read, the answer says so.
 */
#ifndef WEIR_SIM_REDIS_ARGS_H
#define WEIR_SIM_REDIS_ARGS_H

#include "tests/sim/redis_reply.h"

bool arg_number(struct redis_conn *conn, struct slice arg, int64_t *number);
bool arg_float(struct redis_conn *conn, struct slice arg, double *number);

/* At least 0: "value is out of range, must be positive" otherwise. */
bool arg_positive(struct redis_conn *conn, struct slice arg, int64_t *number);

/* A database, or 0 .. INT_MAX. */
bool arg_int(struct redis_conn *conn, struct slice arg, int64_t *number);

/* When a wait that begins now is over; REDIS_NEVER for 0. The unit is 1000000 for seconds, 1000 for ms. */
bool arg_timeout(struct redis_conn *conn, struct slice arg, double unit_us, uint64_t *due_us);

/* "left" or "right". */
bool arg_side(struct redis_conn *conn, struct slice arg, bool *is_left);

/* How many of n are from `from` to `to`, where what is negative counts from the end; and the first of them. */
size_t range_of(int64_t from, int64_t to, size_t n, size_t *first);

/* Expiry of SET and its like, `unit_ms` each, from now or since 1970. */
bool arg_expiry(struct redis_conn *conn, struct slice arg, int64_t unit_ms, bool is_moment, int64_t *expires_ms);

/* That a time is none: too large, or not larger than 0 where it must be. */
void reply_expiry(struct redis_conn *conn);

#endif
