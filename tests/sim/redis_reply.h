/* Replies to a connection, in its protocol. Nothing is written while CLIENT REPLY is off. */
#ifndef WEIR_SIM_REDIS_REPLY_H
#define WEIR_SIM_REDIS_REPLY_H

#include "tests/sim/redis_state.h"

/* For "%.*s": an argument up to its first NUL, as C shows it. */
#define SHOWN(piece) (int)text_upto_nul(piece).len, (piece).at

void reply_raw(struct redis_conn *conn, struct slice bytes);
void reply_status(struct redis_conn *conn, const char *status);
void reply_ok(struct redis_conn *conn);
void reply_number(struct redis_conn *conn, int64_t number);
void reply_bulk(struct redis_conn *conn, struct slice text);
void reply_word(struct redis_conn *conn, const char *text); /* as a bulk string */
void reply_null(struct redis_conn *conn);
void reply_null_array(struct redis_conn *conn);
void reply_array(struct redis_conn *conn, size_t n);
void reply_map(struct redis_conn *conn, size_t n_pairs);
void reply_set(struct redis_conn *conn, size_t n);
void reply_push(struct redis_conn *conn, size_t n);
void reply_double(struct redis_conn *conn, double number);
void reply_verbatim(struct redis_conn *conn, struct slice text); /* as txt */

/* The first word is the code: "ERR ...". Line ends in arguments become blanks. */
void reply_error(struct redis_conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void reply_syntax(struct redis_conn *conn);
void reply_wrong_type(struct redis_conn *conn);
void reply_not_integer(struct redis_conn *conn);
void reply_arity(struct redis_conn *conn);

/* mark: where an array of unknown length begins. *_at: inserts the array's header at the mark. */
size_t reply_mark(const struct redis_conn *conn);
void reply_array_at(struct redis_conn *conn, size_t mark, size_t n);
void reply_map_at(struct redis_conn *conn, size_t mark, size_t n_pairs);
void reply_set_at(struct redis_conn *conn, size_t mark, size_t n);

/* Inserts bytes before the bytes written since the mark. */
void reply_insert(struct redis_conn *conn, size_t mark, struct slice bytes);

/*
 * Output between push_begin and push_end is a push message: no reply, and not suppressed by CLIENT
 * REPLY.
 */
bool push_begin(struct redis_conn *conn);
void push_end(struct redis_conn *conn, bool was_pushing);

/* Puts the connection into the list of redis_touched. */
void conn_touch(struct redis_conn *conn);

#endif
