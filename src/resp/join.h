/*
 * Joins the replies to the parts of one request to the request's reply.
 *
 * Replies are whole frames of Redis, in RESP2 or RESP3, all in the protocol of one connection. The
 * result has the same protocol. The first error among the replies is the result, except for
 * JOIN_ANY and JOIN_KILL. No value of a part is ever replaced by nil. The functions read bytes in
 * place; only `out` and join_values allocate. Any thread.
 */
#ifndef WEIR_RESP_JOIN_H
#define WEIR_RESP_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "resp/build.h"

enum join {
    JOIN_FIRST,  /* the only part has the reply */
    JOIN_VALUES, /* arrays: each value at the position of its key (join_values) */
    JOIN_OK,     /* the first reply, if no reply is an error */
    /* the first reply that is no error; else the first error that says more than "nothing to do" */
    JOIN_ANY,
    JOIN_SUM,        /* integers: their sum */
    JOIN_LEAST,      /* integers: the least */
    JOIN_LEAST_EACH, /* arrays of integers, of equal length: the least at each position */
    JOIN_AND,        /* arrays of integers: 1 at positions where no array has 0 */
    JOIN_PAIRS,      /* arrays of names and integers, with equal names: the sum for each name */
    JOIN_LIST,       /* arrays, sets or maps: concatenated */
    JOIN_TEXT,       /* bulk or verbatim strings: concatenated */
    JOIN_PICK,       /* a reply that is not nil; nil if all are nil */
    JOIN_KILL,       /* if all replies are integers, the sum or the first error; else as JOIN_ANY */
};

/* The result if a part's reply does not have the form that its command requires. */
#define JOIN_ODD SLICE("-UPSTREAM replies of several nodes are inconsistent\r\n")

/* Joins `n` > 0 whole replies. `pick` is any number: JOIN_PICK tries reply pick % n first. */
void join_replies(struct build *out, enum join join, const struct slice *replies, size_t n,
                  size_t pick);

/* Describes an array: element i is the element where[i].index of replies[where[i].part]. */
struct join_where {
    uint32_t part;
    uint32_t index; /* among the elements of one part, indexes never decrease along `where` */
};

/* Joins elements of `n` replies to an array of `n_values`. Out of memory sets out->is_broken. */
void join_values(struct build *out, const struct slice *replies, size_t n,
                 const struct join_where *where, size_t n_values);

/* True if the whole reply is an error. */
bool join_is_error(struct slice reply);

#endif
