/*
 * How many lanes a worker has, and what became of others: counted by the worker, read by anybody (base/count.h).
 */
#ifndef WEIR_UPSTREAM_LANE_COUNTS_H
#define WEIR_UPSTREAM_LANE_COUNTS_H

#include "base/count.h"

/* The list that a lane is in. */
enum lane_list {
    LIST_NONE,
    LIST_OPENING, /* connecting or greeting, of any role */
    LIST_SHARED,
    LIST_RETIRED, /* shared, and takes no new calls: those on it take their time */
    LIST_SPARE,   /* shared, for when the one in use is retired */
    LIST_PRIVATE, /* has an owner */
    LIST_IDLE,    /* private, kept for its last owner or the next */
    LIST_SCRIPT,
    LIST_DOOR,
    LIST_COUNT
};

/*
 * Why a lane has failed. LOSS_SYSTEM: there was no descriptor or no memory to open one. LOSS_UNCLEAN: between two
 * owners it answered otherwise than it must.
 */
enum lane_loss {
    LOSS_CONNECT,
    LOSS_TIMEOUT,
    LOSS_PROTOCOL,
    LOSS_CLOSED,
    LOSS_AUTH,
    LOSS_SYSTEM,
    LOSS_UNCLEAN,
    LOSS_COUNT
};

struct lane_counts {
    _Atomic uint64_t lists[LIST_COUNT]; /* lanes there now */
    _Atomic uint64_t in_flight;         /* requests sent and not answered, now */
    _Atomic uint64_t blocking;          /* of them those that may wait in Redis */
    _Atomic uint64_t subscribed;        /* connections with subscriptions, now */
    _Atomic uint64_t opened;            /* connections begun */
    _Atomic uint64_t lost[LOSS_COUNT];
    _Atomic uint64_t pushes_dropped; /* that nobody on the lane had asked for */
    _Atomic uint64_t is_down;        /* 1: the upstream is away, as far as this worker knows */
};

/* "opening" ..., "connect" ... */
const char *lane_list_name(enum lane_list in);
const char *lane_loss_name(enum lane_loss loss);

#endif
