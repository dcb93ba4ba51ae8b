/*
 * All lanes of one worker: finds the shared one for a session, lends private ones and takes them back, reconnects, and
 * knows whether the upstream is there.
 */
#ifndef WEIR_UPSTREAM_LANES_H
#define WEIR_UPSTREAM_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"
#include "upstream/backoff.h"
#include "upstream/lane.h"
#include "upstream/lane_counts.h"
#include "upstream/login.h"
#include "upstream/upstream.h"

#define LANES_IDLE_MAX 128              /* a worker's idle lanes; more are closed at once */
#define LANES_IDLE_NS (3 * NS_PER_S)    /* and these after so long */
#define LANES_UNUSED_NS (60 * NS_PER_S) /* and a shared lane that nobody has used for so long */
#define LANES_SLUGGISH_NS                                                                                              \
    (10 * NS_PER_MS) /* a shared lane silent for so long, and four round trips, gets no new calls */
#define LANES_OWN_AGAIN_NS (500 * NS_PER_MS) /* after Redis has refused weir's own login it is not asked for so long */
#define LANES_SPARE 2                    /* idle lanes that a shared one leaves behind when it takes no more calls */
#define LANES_ABSORB_BYTES 8388608       /* a worker's memory for replies that are taken in for others' sake at once */
#define LANES_ABSORB_LATE_BYTES 67108864 /* and for those whose readers have done nothing for a tick */
#define LANES_UNREAD_NS (5 * NS_PER_S)   /* how long a reader may do nothing before output-limit is held against it */
#define LANES_STALL_NS (1 * NS_PER_S)    /* how long calls may wait behind a reply that is not read */

enum door { DOOR_LOGIN, DOOR_ANONYMOUS, DOOR_COUNT };

struct lanes_ops {
    /* Redis does not accept this login any more: who came in by it must go. */
    void (*on_login_refused)(void *arg, const struct login *login);
    /* Is anybody left who came in this epoch and has not logged in? */
    bool (*has_epoch)(void *arg, uint32_t epoch);
};

struct lanes {
    struct loop *loop;
    struct upstream *upstream;
    bool keeps_shared; /* a shared lane for new clients is kept open */
    const struct lanes_ops *ops;
    void *arg;

    struct list opening; /* connecting or greeting, of any role */
    struct list shared;
    struct list retired;
    struct list private;
    struct list idle; /* the one that fell idle last at the end */
    struct lane *doors[DOOR_COUNT];
    uint32_t n_idle;
    uint32_t version;        /* changes whenever a shared lane may have come or gone */
    uv_timer_t tick;         /* runs while a lane is being opened or is retired, or a reconnect is due */
    uv_timer_t sweep;        /* runs while lanes are idle, and always with an upstream-timeout */
    struct login *own;       /* weir's own, as it is now; NULL: it does not log in */
    uint64_t own_refused_ns; /* when Redis refused it last; 0: it has not since it was set */
    struct backoff backoff;
    struct backoff starved; /* the system has refused a descriptor or memory: no lane is opened before it is over */
    uint32_t absorbed;      /* bytes of replies that were taken in, until their readers have caught up */
    enum err down;     /* the last attempt failed: answer with this at once, try in the background; else ERR_NONE */
    bool is_garbled;   /* what came last in place of a greeting's answer was no RESP */
    bool cannot_reset; /* this Redis has no RESET: a used lane serves its own session only */
    bool is_closing;
    struct lane_counts counts;
};

void lanes_init(struct lanes *lanes, struct loop *loop, struct upstream *upstream, bool keeps_shared,
                const struct lanes_ops *ops, void *arg);

/* Weir's own login from now on, for lanes that are opened; those that are open stay. Out of memory: nothing changes. */
void lanes_set_own(struct lanes *lanes, struct slice user, struct slice password);

/* Open what is kept open for new clients. */
void lanes_start(struct lanes *lanes);

/* The login of clients that do not log in; NULL: none. */
static inline struct login *lanes_lent(const struct lanes *lanes)
{
    return lanes->upstream->lends_login ? lanes->own : NULL;
}

/* The session of a client that connects now. */
struct lane_key lanes_newcomer(const struct lanes *lanes);

/* What a client is told when there is no lane for it. */
enum err lanes_why_none(const struct lanes *lanes);

/* Has the lane been silent for long, though calls wait for answers? Then new ones had better go elsewhere. */
bool lanes_is_sluggish(const struct lanes *lanes, const struct lane *lane);

/* The shared lane for a session: ready, or to be waited for; NULL when the upstream is away or memory is out. */
struct lane *lanes_shared(struct lanes *lanes, const struct lane_key *key);

/* The same, if there is one; opens none. */
struct lane *lanes_find_shared(struct lanes *lanes, const struct lane_key *key);

/* A private lane for `owner`, new or used but clean; ready, or to be waited for. NULL as above. */
struct lane *lanes_private(struct lanes *lanes, const struct lane_key *key, struct rider *owner);

/* The lane on which Redis judges who somebody is. Ready, or to be waited for. NULL as above. */
struct lane *lanes_door(struct lanes *lanes, enum door door);

/* Its owner needs this private lane no longer, and it is clean: it is shared, kept for the next, or closed. */
void lanes_release(struct lanes *lanes, struct lane *lane);

/* Close every lane; asynchronous. No rider may be left. */
void lanes_close(struct lanes *lanes);

/* ---- from a lane ---- */

void lanes_on_connected(struct lanes *lanes, struct lane *lane);
void lanes_on_ready(struct lanes *lanes, struct lane *lane, bool needs_auth);
/* It is closed, after having been ready or not. */
void lanes_on_failed(struct lanes *lanes, struct lane *lane, bool was_ready, const char *why);
/* A lane does not go on because a reply is not read. */
void lanes_on_stalled(struct lanes *lanes, struct lane *lane);
/* No new calls for this shared lane. False: it must go on, as none like it could be opened. */
bool lanes_retire(struct lanes *lanes, struct lane *lane);
/* May the rest of this reply be taken in, though its reader does not keep up? Until lanes_absorbed. */
bool lanes_absorb(struct lanes *lanes, struct lane *lane, struct rider *rider);
void lanes_absorbed(struct lanes *lanes, struct rider *rider);
/* A retired lane has answered everything. */
void lanes_on_emptied(struct lanes *lanes, struct lane *lane);

/* ---- for upstream/timers ---- */

static inline struct lane *lanes_at(struct list *at)
{
    return container_of(at, struct lane, in_home);
}

void lanes_move(struct lane *lane, struct list *list);
void lanes_take(struct lane *lane); /* out of its list */
void lanes_keep_idle(struct lanes *lanes, struct lane *lane);

/* Is it the shared one for clients that have just connected? */
bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane);

/* Is it a shared lane that does nothing, and can be opened again when somebody asks for it? */
bool lanes_is_expendable(const struct lanes *lanes, const struct lane *lane);

/* Try the upstream again if that is due. Will it be, later? */
bool lanes_retry(struct lanes *lanes, uint64_t now_ns);

#endif
