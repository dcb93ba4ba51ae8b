/*
 * Parsers of commands' arguments. For a wrong argument a parser replies with the error and returns
 * false.
 */
#ifndef WEIR_SIM_REDIS_ARGS_H
#define WEIR_SIM_REDIS_ARGS_H

#include "tests/sim/redis_reply.h"

bool arg_number(struct redis_conn *conn, struct slice arg, int64_t *number);
bool arg_float(struct redis_conn *conn, struct slice arg, double *number);

/* Parses a number of at least 0. The error is "value is out of range, must be positive". */
bool arg_positive(struct redis_conn *conn, struct slice arg, int64_t *number);

/* A database, or 0 .. INT_MAX. */
bool arg_int(struct redis_conn *conn, struct slice arg, int64_t *number);

/*
 * The end of a wait that begins now; REDIS_NEVER for 0. unit_us: 1000000 for seconds, 1000 for ms.
 */
bool arg_timeout(struct redis_conn *conn, struct slice arg, double unit_us, uint64_t *due_us);

/* "left" or "right". */
bool arg_side(struct redis_conn *conn, struct slice arg, bool *is_left);

/*
 * Returns how many of n elements are from `from` to `to`. *first: the first of these elements.
 * Negative indices count from the end.
 */
size_t range_of(int64_t from, int64_t to, size_t n, size_t *first);

/* Expiry of SET and the like, in units of `unit_ms`, from now or since 1970. */
bool arg_expiry(struct redis_conn *conn, struct slice arg, int64_t unit_ms, bool is_moment,
                int64_t *expires_ms);

/* Replies that the expiry is invalid: too large, or not above 0 where it must be. */
void reply_expiry(struct redis_conn *conn);

#endif
