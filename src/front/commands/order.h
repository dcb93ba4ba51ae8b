/*
 * An admin command: a client's command that concerns the whole process (LIMIT SET, LIMIT RELOAD
 * ...). The client's worker makes the command, and the main thread carries it out. The command
 * returns to the worker with its result when every worker has the change.
 *
 * Ownership moves with the pointer. The worker owns the command until giving it to the main thread,
 * the main thread until returning it.
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
    ORDER_CLIENTS, /* passes through all workers: front/commands/orders.h */
    ORDER_KICK,    /* likewise */
    ORDER_SUGGEST,
    ORDER_INFO,
    ORDER_LIST,
    ORDER_TOP,
    ORDER_BLOCKS,
    ORDER_UPSTREAM,
};

/* Contents of a report. */
struct report_wanted {
    bool is_refusing;    /* ORDER_LIST: only limits that refuse now */
    enum top_by by;      /* ORDER_TOP; TOP_BY_COUNT: the report is about keys of named limits */
    size_t n;            /* ORDER_TOP, ORDER_BLOCKS: number of rows */
    unsigned percentile; /* ORDER_SUGGEST: see suggestion_make */
};

/*
 * A line with a running value that differs from the file. A member is "" if its side lacks the
 * line.
 */
struct difference {
    char *section; /* for example "policy free" or "weir" */
    char *what;
    char *running;
    char *file;
};

#define ORDER_BY_ROOM 256

struct order {
    struct list in_queue; /* of its current owner */
    enum order_kind kind;
    /* the operator, as session_print_operator prints it; "": given by a signal */
    char by[ORDER_BY_ROOM];
    /*
     * ORDER_SET, ORDER_UNSET: the policy. ORDER_SET_LIMIT, ORDER_SET_KEY, ORDER_UNSET_KEY: the
     * limit's name. ORDER_SUGGEST: the policy, NULL for all.
     */
    char *policy;
    /*
     * ORDER_SET, ORDER_UNSET: the key; ORDER_SUGGEST: the class; ORDER_INFO: the section; NULL: all
     */
    char *what;
    /*
     * ORDER_SET: the value of the line. ORDER_SET_LIMIT, ORDER_SET_KEY: the line. ORDER_MODE:
     * enforce or shadow. ORDER_BLOCK: the reason, NULL for none. ORDER_SUGGEST: the excluded
     * subjects, separated by blanks, NULL for none.
     */
    char *expression;
    /*
     * ORDER_SET_KEY, ORDER_UNSET_KEY: the key, any bytes. ORDER_BLOCK, ORDER_UNBLOCK, ORDER_KICK:
     * the subject's name. ORDER_SET, ORDER_UNSET, ORDER_CLIENTS: the subject's name, NULL for all.
     * ORDER_LIST: the pattern.
     */
    char *key;
    size_t key_len;
    /* ORDER_SET, ORDER_SET_KEY, ORDER_BLOCK: the duration as written; NULL: until revoked */
    char *lives;
    /*
     * end of the duration (base/clock.h) of a command given to the previous process; 0: see `lives`
     */
    uint64_t until_ns;
    bool is_handed_over; /* was valid in the previous process; not checked for an effect again */
    void *worker;        /* the worker of `client`; used by the main thread */
    void *client;        /* NULL: the client is closed */

    bool is_starved; /* result: out of memory, and the command was not carried out */
    char *error;     /* result: why the command was not carried out; NULL: it was */
    /* ORDER_CLIENTS, ORDER_KICK: number of workers that have received the command */
    unsigned visited;
    bool is_on_its_round; /* the receiving worker does its part and passes the command on */
    size_t n_rows;        /* number of clients in `rows`, or number of closed clients */
    size_t n_more;        /* number of matching clients that `rows` omits */
    /* ORDER_CLIENTS: rows; reports, ORDER_DIFF and ORDER_UPSTREAM: the whole reply */
    struct build rows;
    struct report_wanted wanted; /* ORDER_LIST, ORDER_TOP, ORDER_BLOCKS, ORDER_SUGGEST */
    struct difference *differences;
    size_t n_differences;
    char *lines; /* ORDER_SUGGEST: lines, each with a line feed; not NUL-terminated */
    size_t lines_len;
    /* ORDER_INFO: not NUL-terminated; ORDER_RELOAD: what needs a restart, NULL: nothing */
    char *text;
    size_t text_len;
};

static inline bool order_goes_round(const struct order *order)
{
    return order->kind == ORDER_CLIENTS || order->kind == ORDER_KICK;
}

/*
 * Returns a new admin command, zeroed except for its kind. NULL if out of memory. The caller owns
 * the command.
 */
struct order *order_new(enum order_kind kind);
void order_free(struct order *order); /* safe on NULL */

#endif
