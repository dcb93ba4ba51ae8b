/*
 * How many lanes a worker has to one node, and what became of earlier ones: counted by the worker's thread, read by any
 * (base/count.h).
 */
#ifndef WEIR_UPSTREAM_LANE_COUNTS_H
#define WEIR_UPSTREAM_LANE_COUNTS_H

#include "base/count.h"
#include "upstream/node/not_run.h"

/* Each lane is in one list, which says what it is doing. */
enum lane_list {
    LIST_NONE,    /* closed, or not opened yet */
    LIST_OPENING, /* connecting or greeting, of any role */
    LIST_SHARED,  /* takes the calls of all clients of its session */
    LIST_RETIRED, /* shared, and takes no new calls, because those on it take long */
    LIST_SPARE,   /* shared, without calls, for when the one in use is retired */
    LIST_PRIVATE, /* has an owner */
    LIST_IDLE,    /* private, kept for its last owner or the next */
    LIST_SCRIPT,  /* weir's, for the scripts of LIMIT */
    LIST_DOOR,    /* weir's, for logins */
    LIST_COUNT
};

/* Why a lane has failed. */
enum lane_loss {
    LOSS_CONNECT,  /* the connection could not be made, or Redis turned it away */
    LOSS_TIMEOUT,  /* an answer did not come in time */
    LOSS_PROTOCOL, /* what came may not come there */
    LOSS_CLOSED,   /* Redis has closed it when it was ready */
    LOSS_AUTH,     /* Redis has refused its login, or what else its greeting asks for */
    LOSS_SYSTEM,   /* there was no descriptor or no memory to open one */
    LOSS_UNCLEAN,  /* between two owners it answered otherwise than it must */
    LOSS_COUNT
};

/* What a node of a cluster has said instead of running a command. */
enum lane_redirect {
    REDIRECT_MOVED,
    REDIRECT_ASK,
    REDIRECT_TRYAGAIN,
    REDIRECT_CLUSTERDOWN,
    REDIRECT_GIVEN_UP, /* and the client, or limit-when-down, was told: after too many of these, or too long */
    REDIRECT_COUNT
};

struct lane_counts {
    _Atomic uint64_t lists[LIST_COUNT]; /* lanes there now */
    _Atomic uint64_t in_flight;         /* requests sent and not answered, now */
    _Atomic uint64_t blocking;          /* of them those that may wait in Redis */
    _Atomic uint64_t subscribed;        /* connections with subscriptions, now */
    _Atomic uint64_t requests;          /* sent, weir's own among them */
    _Atomic uint64_t opened;            /* connections begun */
    _Atomic uint64_t lost[LOSS_COUNT];
    _Atomic uint64_t redirects[REDIRECT_COUNT];
    _Atomic uint64_t error_replies;  /* errors that answered clients' requests */
    _Atomic uint64_t pushes_dropped; /* pushes that nobody on the lane had asked for */
    _Atomic uint64_t is_down;        /* 1: the node is away, as far as this worker knows */
};

/* "opening" ..., "connect" ..., "moved" ... */
const char *lane_list_name(enum lane_list in);
const char *lane_loss_name(enum lane_loss loss);
const char *lane_redirect_name(enum lane_redirect redirect);

/* A call of a client comes back for that reason. */
void lane_counts_note_refusal(struct lane_counts *counts, enum not_run row);

#endif
