/* The parser of requests, with Redis' rules. */
#ifndef WEIR_SIM_REDIS_REQUEST_H
#define WEIR_SIM_REDIS_REQUEST_H

#include "tests/sim/redis_state.h"

enum request_result { REQUEST_MORE, REQUEST_WHOLE, REQUEST_EMPTY, REQUEST_BAD };

/*
 * Parses on. BAD: the error is replied, and the connection closes. EMPTY: an empty request was
 * read.
 */
enum request_result request_read(struct redis_conn *conn);

/* The words of a complete request, valid until request_done. */
const struct slice *request_words(struct redis_conn *conn, size_t *n);
void request_done(struct redis_conn *conn);
void request_fini(struct redis_conn *conn);

#endif
