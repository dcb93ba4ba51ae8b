/*
 * SCAN over the masters of a cluster: what a cursor says, and which master is next.
 *
 *   masters   A B C             in an order that follows from their names alone (addresses), not from their rows
 *   cursor    (cursor at the master x number of masters + the master's place) x 4096 + check
 *
 * The check is of the set of masters. A cursor of another set (a failover, a master added or removed) begins anew at
 * the
 * first master: a key that is there all the time is returned, duplicates are legal. So every weir before the cluster
 * understands every cursor, and slots that move meanwhile change nothing. A cursor is an unsigned number of 64 bits in
 * decimal, as libraries expect; it stays below 2^53, which JavaScript can hold, while a server's is below 2^41
 * divided by the number of masters. 0 begins and ends a scan. Pure; any thread.
 */
#ifndef WEIR_LIMIT_SCAN_CURSOR_H
#define WEIR_LIMIT_SCAN_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Where a scan is. */
struct scan_place {
    uint64_t cursor; /* at the master; 0: its scan begins */
    uint32_t master; /* in the order */
};

/* The masters in their order. */
struct scan_order {
    uint32_t *rows; /* by place: which of the names that were given */
    uint32_t n;
    uint16_t check;
};

/* Of n > 0 different names. False: out of memory. scan_order_fini frees. */
__attribute__((warn_unused_result)) bool scan_order_init(struct scan_order *order, const struct slice *names,
                                                         uint32_t n);
void scan_order_fini(struct scan_order *order);

/* Read a client's cursor. False: it is none, and Redis would say so. */
__attribute__((warn_unused_result)) bool scan_cursor_read(const struct scan_order *order, struct slice text,
                                                          struct scan_place *place);

/*
 * What the client's next cursor is when the master at `place` has answered with the cursor `text`. False: that is
 * none, or it is too large to be told.
 */
__attribute__((warn_unused_result)) bool scan_cursor_next(const struct scan_order *order,
                                                          const struct scan_place *place, struct slice text,
                                                          uint64_t *next);

/* A cursor as text, in `out`. */
#define SCAN_CURSOR_ROOM 24
struct slice scan_cursor_print(uint64_t cursor, char out[SCAN_CURSOR_ROOM]);

/* A reply of SCAN: the cursor in it, and what follows. False: it is no such reply. */
__attribute__((warn_unused_result)) bool scan_reply_read(struct slice reply, struct slice *cursor, struct slice *rest);

#endif
