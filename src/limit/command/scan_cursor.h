/*
 * SCAN over the masters of a cluster: the content of a cursor, and the next master.
 *
 *   masters   A B C             in an order that depends only on their names (addresses)
 *   cursor    (cursor at the master x number of masters + index of the master) x 4096 + check
 *
 * The check identifies the set of masters. A cursor of another set (after a failover, or a master
 * added or removed) restarts at the first master. A key that exists during the whole scan is still
 * returned, perhaps twice, which SCAN allows. Every weir in front of the cluster therefore
 * understands every cursor, and slots that move meanwhile change nothing.
 *
 * A cursor is an unsigned 64-bit number in decimal, as libraries expect. While a server's cursor is
 * below 2^41 divided by the number of masters, the client's cursor is below 2^53, which JavaScript
 * can hold. The cursor 0 begins and ends a scan. Pure; any thread.
 */
#ifndef WEIR_LIMIT_SCAN_CURSOR_H
#define WEIR_LIMIT_SCAN_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The position of a scan. */
struct scan_position {
    uint64_t cursor; /* cursor at the master; 0: the scan of the master begins */
    uint32_t master; /* index in the order */
};

/* The masters in their order. */
struct scan_order {
    uint32_t *rows; /* by index in the order: index of the name passed to scan_order_init */
    uint32_t n;
    uint16_t check;
};

/* Orders n > 0 different names. False: out of memory. scan_order_fini frees. */
__attribute__((warn_unused_result)) bool scan_order_init(struct scan_order *order,
                                                         const struct slice *names, uint32_t n);
void scan_order_fini(struct scan_order *order);

/* Reads a client's cursor. False: not a cursor; Redis would return an error. */
__attribute__((warn_unused_result)) bool scan_cursor_read(const struct scan_order *order,
                                                          struct slice text,
                                                          struct scan_position *position);

/*
 * Computes the client's next cursor after the master at `position` has answered with the cursor
 * `text`. False: `text` is not a cursor, or too large to encode.
 */
__attribute__((warn_unused_result)) bool scan_cursor_next(const struct scan_order *order,
                                                          const struct scan_position *position,
                                                          struct slice text, uint64_t *next);

/* Prints a cursor into `out`. */
#define SCAN_CURSOR_ROOM 24
struct slice scan_cursor_print(uint64_t cursor, char out[SCAN_CURSOR_ROOM]);

/* Splits a reply of SCAN into its cursor and the rest. False: not a reply of SCAN. */
__attribute__((warn_unused_result)) bool scan_reply_read(struct slice reply, struct slice *cursor,
                                                         struct slice *rest);

#endif
