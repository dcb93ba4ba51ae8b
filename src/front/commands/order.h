/*
 * An order: what a client asks of the whole process (LIMIT SET, LIMIT RELOAD ...). It is made on the client's worker,
 * carried out on the main thread, and comes back to the worker with its result once every worker has what it changed.
 *
 * Whoever holds an order owns it: the worker until it is given, the main thread until it is returned.
 */
#ifndef WEIR_FRONT_ORDER_H
#define WEIR_FRONT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "limit/figures/top.h"
#include "resp/build.h"

enum order_kind {
    ORDER_RELOAD,
    ORDER_SET,
    ORDER_SET_LIMIT,
    ORDER_SET_KEY,
    ORDER_UNSET,
    ORDER_UNSET_KEY,
    ORDER_MODE,
    ORDER_DIFF,
    ORDER_BLOCK,
    ORDER_UNBLOCK,
    ORDER_CLIENTS, /* goes round the workers: front/commands/orders.h */
    ORDER_KICK,    /* so does this one */
    ORDER_SUGGEST,
    ORDER_INFO,
    ORDER_LIST,
    ORDER_TOP,
    ORDER_BLOCKS,
    ORDER_UPSTREAM,
};

/* What a report is to tell. */
struct report_wanted {
    bool is_refusing;    /* ORDER_LIST: only limits that refuse now */
    enum top_by by;      /* ORDER_TOP; TOP_BY_COUNT: the keys of named limits */
    size_t n;            /* ORDER_TOP, ORDER_BLOCKS: rows */
    unsigned percentile; /* ORDER_SUGGEST: see suggestion_make */
};

/* A line that runs otherwise than it stands in the file; "" where there is none. */
struct difference {
    char *section; /* "policy free", "weir" */
    char *what;
    char *running;
    char *file;
};

#define ORDER_BY_ROOM 256

struct order {
    struct list in_queue; /* of whoever holds it */
    enum order_kind kind;
    char by[ORDER_BY_ROOM]; /* who gives it: session_print_operator; "": nobody, but a signal */
    /*
     * ORDER_SET, ORDER_UNSET; ORDER_SET_LIMIT, ORDER_SET_KEY, ORDER_UNSET_KEY: the limit's name; ORDER_SUGGEST, where
     * NULL means all
     */
    char *policy;
    char *what; /* ORDER_SET, ORDER_UNSET; ORDER_SUGGEST: the class; ORDER_INFO: the section; NULL: all */
    /*
     * ORDER_SET: the right side of the line; ORDER_SET_LIMIT, ORDER_SET_KEY: the line; ORDER_MODE: enforce or shadow;
     * ORDER_BLOCK: the reason, NULL: none; ORDER_SUGGEST: the subjects that are left out, with blanks between, NULL: none
     */
    char *expression;
    /*
     * ORDER_SET_KEY, ORDER_UNSET_KEY: any bytes; ORDER_BLOCK, ORDER_UNBLOCK: the subject's name; ORDER_SET, ORDER_UNSET:
     * the same, NULL: for all subjects of the policy; ORDER_LIST: the pattern
     */
    char *key;
    size_t key_len;
    char *
        lives; /* ORDER_SET, ORDER_SET_KEY, ORDER_BLOCK: for how long, as it is written; NULL: until it is taken back */
    uint64_t until_ns; /* the same by base/clock.h, of an order that was given to the process before; 0: see `lives` */
    bool is_handed_over; /* it was good for the process before, and is not asked again whether it can have an effect */
    void *worker;        /* whose client it is from; the main thread's business */
    void *client;        /* NULL: it has gone */

    bool is_starved;             /* the result: there was no memory for it, and it has not been carried out */
    char *error;                 /* or why not; NULL: it has been */
    unsigned visited;            /* ORDER_CLIENTS, ORDER_KICK: how many workers have had it, or have it now */
    bool is_on_its_round;        /* the worker that takes it is to do its part, and to pass it on */
    size_t n_rows;               /* how many clients `rows` tells of, or have been closed */
    size_t n_more;               /* and how many there are besides */
    struct build rows;           /* of a report, ORDER_DIFF and ORDER_UPSTREAM: the whole reply */
    struct report_wanted wanted; /* ORDER_LIST, ORDER_TOP, ORDER_BLOCKS, ORDER_SUGGEST */
    struct difference *differences;
    size_t n_differences;
    char *lines; /* ORDER_SUGGEST: each with a line feed; not NUL-terminated */
    size_t lines_len;
    char *text; /* ORDER_INFO, not NUL-terminated; ORDER_RELOAD: what needs a restart, NULL: nothing */
    size_t text_len;
};

static inline bool order_goes_round(const struct order *order)
{
    return order->kind == ORDER_CLIENTS || order->kind == ORDER_KICK;
}

/* A new one, zeroed but for its kind. NULL: out of memory. */
struct order *order_new(enum order_kind kind);
void order_free(struct order *order); /* NULL may be freed */

#endif
