/*
 * Several replies to parts of one request become the request's reply.
 *
 * Replies are whole frames of Redis, in RESP2 or RESP3; the result has the protocol of the parts, as each has it in the
 * same connection's protocol. The first part that answers an error decides: its error is the reply, and no part's value
 * is ever replaced by a nil. Bytes only; nothing is allocated but what `out` takes. Any thread.
 */
#ifndef WEIR_RESP_JOIN_H
#define WEIR_RESP_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "resp/build.h"

enum join {
    JOIN_FIRST,      /* one part alone has the reply */
    JOIN_VALUES,     /* arrays: each value in the place of its key (join_values) */
    JOIN_OK,         /* the first reply, if none is an error */
    JOIN_ANY,        /* the first that is no error; else an error that says more than that there was nothing to do */
    JOIN_SUM,        /* integers */
    JOIN_LEAST,      /* integers */
    JOIN_LEAST_EACH, /* arrays of integers, of the same length */
    JOIN_AND,        /* arrays of integers: 1 where all say 1 */
    JOIN_PAIRS,      /* arrays of names and integers, all of the same names: the sum behind each name */
    JOIN_LIST,       /* arrays, sets or maps, one behind the other */
    JOIN_TEXT,       /* bulk or verbatim strings, one behind the other */
    JOIN_PICK,       /* one that is not nil; nil if all are */
    JOIN_KILL,       /* integers: their sum; else as JOIN_ANY */
};

/* What is said in the place of replies of which at least one has not the form that its command's reply has. */
#define JOIN_ODD SLICE("-UPSTREAM replies of several nodes do not fit together\r\n")

/* `n` > 0 whole replies. `pick`: any number, for JOIN_PICK: from which part on one is looked for. */
void join_replies(struct build *out, enum join join, const struct slice *replies, size_t n, size_t pick);

/* One array that has in place i the element where[i].index of replies[where[i].part]. */
struct join_where {
    uint32_t part;
    uint32_t index; /* in the order of `where`, indexes of one part never decrease */
};

/* `n` replies, `n_values` places. Out of memory: out->is_broken. */
void join_values(struct build *out, const struct slice *replies, size_t n, const struct join_where *where,
                 size_t n_values);

/* True if the whole reply is an error. */
bool join_is_error(struct slice reply);

#endif
