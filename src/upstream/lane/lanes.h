/*
 * All lanes of one worker to one node: keeps the lanes in lists by their state, and opens lanes
 * within the bounds.
 *
 * Other modules build on lanes.h. shared.h has the shared lane of a session. lend.h lends private
 * lanes. health.h handles failures and decides whether the node is up. timers.h has the time-outs.
 * The worker's thread only. Lanes close asynchronously: the event loop completes a close.
 */
#ifndef WEIR_UPSTREAM_LANES_H
#define WEIR_UPSTREAM_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/loop.h"
#include "upstream/lane/lane.h"
#include "upstream/node/backoff.h"

/* chosen: how long a used lane may take to answer its greeting */
#define LANES_CLEAN_NS (1 * NS_PER_S)
/* chosen: logins remembered because their lanes cannot be RESET */
#define LANES_NO_RESET 8

struct lanes_ops {
    /* Redis has refused the last known password of this user: the user may be gone. */
    void (*on_user_refused)(void *arg, const struct auth_user *user);
    /*
     * True if a client is left that connected in this auth generation of the node and has not
     * logged in.
     */
    bool (*has_auth_generation)(void *arg, const struct node *node, uint32_t auth_generation);
    /*
     * A lane may be available again: at most `most` of the waiting clients should ask again. False:
     * no client waits.
     */
    bool (*on_chance)(void *arg, unsigned most);
};

struct lanes {
    struct lane_base base;
    struct upstream *upstream; /* the upstream of the node */
    /* keep a shared lane for new clients open; false: open lanes on demand */
    bool keeps_shared;
    bool is_closing;
    bool is_retired; /* the node has left the topology: lanes close when their calls are answered */
    const struct lanes_ops *ops;
    void *arg;

    struct list lists[LIST_COUNT]; /* by enum lane_list; the newest member is at the end */
    uint32_t n_idle;               /* number of lanes in LIST_IDLE */
    /* runs while a lane is opening or retired, a reconnect is due, or lane users wait for room */
    uv_timer_t tick;
    /* runs while lanes are idle or owe answers, and always with an upstream-timeout */
    uv_timer_t sweep;
    uint64_t looked_ns; /* when lanes were last checked for vanished hosts */
    /* how long the oldest call had waited at the last sweep (lane_owes_ns); read by any thread */
    _Atomic uint64_t oldest_ns;
    uv_timer_cb on_tick; /* from timers.c */
    uv_timer_cb on_sweep;
    unsigned n_timers; /* timers not closed in full */
    /* called when the last lane or timer is closed in full; NULL: no callback */
    void (*on_unused)(struct lanes *lanes);

    /*
     * Until this time the first reads of clients (READER_NEW) use a lane of their own. Set when a
     * shared lane has a huge reply (shared_be_wary); 0: no huge reply yet.
     */
    uint64_t wary_until_ns;
    uint64_t doubted_ns; /* when a lane was last opened to ask for the node's role */
    /* when Redis last refused weir's own login; 0: not since the login was set */
    uint64_t login_refused_ns;
    struct backoff backoff; /* between attempts to reach a node that is away */
    /* after the system refused a descriptor or memory: no lane is opened until the back-off ends */
    struct backoff starved;
    /*
     * after a failed attempt: the error that clients get at once, while weir retries in the
     * background; else ERR_NONE
     */
    enum err down;
    uint64_t missed_ns; /* start of the first failed dial since a lane was ready; 0: none failed */
    /* the error if a bound on lanes or dials stopped the last request for a lane; else ERR_NONE */
    enum err why_none;
    bool is_turned_away; /* down because Redis rejects connections: too many are open */
    bool is_garbled;     /* a greeting got bytes that are no RESP since a lane was last ready */
    unsigned n_shut;     /* connections closed during their greeting since the last good greeting */
    /*
     * when n_again was last reset. A retry resets n_again if a second has passed since the last
     * reset, and a lane became ready in between.
     */
    uint64_t again_ns;
    unsigned n_again;                       /* retries without back-off since again_ns */
    bool has_let_in;                        /* a lane became ready since again_ns */
    struct login *no_reset[LANES_NO_RESET]; /* one reference each; the newest replaces the oldest */
    unsigned next_no_reset;
};

/*
 * Initialise the lanes to this node. `ops` are called with `arg`. timers_init must follow. `before`
 * are other lanes of the worker; NULL: none. In a cluster, and with a contention that both nodes
 * share, the fair queue of `before` is used.
 */
void lanes_init(struct lanes *lanes, struct worker_lanes *worker_lanes, struct node *node,
                const struct lanes *before, const struct lanes_ops *ops, void *arg);

/*
 * The node has left the topology: no lane is opened. Shared lanes finish their calls. Private lanes
 * close when their owners give them back. Clients that wait for an opening lane must ask again.
 * weir's own lanes stay.
 */
void lanes_retire(struct lanes *lanes);

/* Close every lane. No lane user may be left. */
void lanes_close(struct lanes *lanes);

/* Call after the last lane and timer has been closed in full. */
void lanes_fini(struct lanes *lanes);

static inline struct lanes *lanes_of(const struct lane *lane)
{
    return container_of(lane->base, struct lanes, base);
}

static inline struct lane *lanes_at(struct list *at)
{
    return container_of(at, struct lane, in_list);
}

static inline struct node *lanes_node(const struct lanes *lanes)
{
    return lanes->base.node;
}

static inline struct loop *lanes_loop(const struct lanes *lanes)
{
    return lanes->base.worker_lanes->loop;
}

static inline struct room *lanes_room(const struct lanes *lanes)
{
    return &lanes->upstream->room;
}

/* The session of a client that connects now. */
struct lane_key lanes_newcomer(const struct lanes *lanes);

/* ---- availability ---- */

/* True if lanes may be asked for. If false, lanes_why_none returns the error for clients. */
bool lanes_are_up(const struct lanes *lanes);

/* True if the system has just refused a descriptor or memory for a lane. */
bool lanes_are_starved(const struct lanes *lanes);

/* The error for a client without a lane. */
enum err lanes_why_none(const struct lanes *lanes);

/* Like lanes_why_none, but ignores weir's own bounds on lanes and dials (why_none). */
enum err lanes_why_away(const struct lanes *lanes);

/* No lane is available from now on, for this reason, until a background retry succeeds. */
void lanes_go_down(struct lanes *lanes, enum err why);

/* A client waits for the node, which is away: retry within 100 ms, whatever the back-off is. */
void lanes_hurry(struct lanes *lanes);

/* Wake the lane user's link at the next tick (20 ms at most): the lane user then asks again. */
void lanes_wake_soon(struct lanes *lanes, struct lane_user *lane_user);

/*
 * True if upstream-dial-rate was the reason for no lane: the lane user's link is woken at the next
 * tick.
 */
__attribute__((warn_unused_result)) bool lanes_wait_to_dial(struct lanes *lanes,
                                                            struct lane_user *lane_user);

/*
 * True if the bound on lanes was the reason for no lane. Other workers are told to give up idle
 * lanes, and the lane user's link is woken when a lane may be opened.
 */
__attribute__((warn_unused_result)) bool lanes_may_retry(struct lanes *lanes,
                                                         struct lane_user *lane_user);

/*
 * Count one more lane for this share, until room_give_back. False: the share is at its bound, see
 * lanes_why_none.
 */
__attribute__((warn_unused_result)) bool lanes_use(struct lanes *lanes, struct room_share share);

/* The share of a lane user. Zeroed if `lane_user` is NULL or counts for no share. */
struct room_share lanes_share_of(const struct lane_user *lane_user);

/*
 * Opens a connection of role LANE_SHARED or LANE_PRIVATE, which counts for `share`. `owner` gets a
 * private lane. NULL: no lane may be opened now.
 */
struct lane *lanes_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role,
                        struct lane_user *owner, struct room_share share);

/* ---- look-up ---- */

/*
 * Returns a lane of role LANE_SHARED in the list `in` with the session `key`; NULL: no lane in the
 * list has this session.
 */
struct lane *lanes_find(struct lanes *lanes, enum lane_list in, const struct lane_key *key);

/* True if the node has accepted a connection that is not ready yet. */
bool lanes_is_taken(const struct lanes *lanes);

void lanes_move(struct lane *lane, enum lane_list in);
void lanes_take(struct lane *lane); /* remove from its list for good: the lane is closed */

/* True if the lane is the shared lane for clients that have just connected. */
bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane);

/*
 * True if the session is of clients that connected when no password was required, and a password is
 * required now. No lane opened from now on is accepted without a login: the existing lanes cannot
 * be replaced.
 */
bool lanes_is_past(const struct lanes *lanes, const struct lane_key *key);

/*
 * True if the lane's session has no login, but a password was set before the lane was greeted: each
 * answer is NOAUTH.
 */
bool lanes_is_shut_out(const struct lane *lane);

/* False: Redis has just refused each password of weir's own login. */
bool lanes_may_log_in(const struct lanes *lanes);

/* True if the lane is an idle shared lane that can be opened again on demand. */
bool lanes_is_expendable(const struct lanes *lanes, const struct lane *lane);

/*
 * Close the lane that has been idle longest. The last connection of a user is closed only if all
 * idle lanes are last connections. False: no lane is idle.
 */
bool lanes_close_idle(struct lanes *lanes);

/*
 * Close the oldest shared lane without a lease, if more than `most` shared lanes have no lease.
 * False: no lane is closed.
 */
bool lanes_close_unleased(struct lanes *lanes, unsigned most);

/* ---- the two timers ---- */

/*
 * lanes_tick starts the timer for work in milliseconds, lanes_sweep the timer for work in seconds.
 */
void lanes_tick(struct lanes *lanes);
void lanes_sweep(struct lanes *lanes);

/* ---- lanes of weir's own ---- */

/*
 * A lane of weir's own, reopened on demand: the common part of auth lanes, the script connection
 * and the release listener. Embedded in the struct of each of these.
 */
struct weir_lane {
    struct lanes *lanes; /* the lanes to the node */
    struct lane_user lane_user;
    struct link hollow; /* a link without a connection, which only wakes the owner */
    bool is_open;       /* lane_user.lane is the lane, ready or opening */
};

/* The value of lane_user_ops.to_link for a struct weir_lane. */
#define WEIR_LANE_TO_LINK                                                                          \
    ((ptrdiff_t)offsetof(struct weir_lane, hollow) -                                               \
     (ptrdiff_t)offsetof(struct weir_lane, lane_user))

/*
 * `base` must be zeroed. lane_user_ops and link_ops must outlive `base`. link_ops has only an
 * on_wake.
 */
void weir_lane_init(struct weir_lane *base, struct lanes *lanes,
                    const struct lane_user_ops *lane_user_ops, const struct link_ops *link_ops);

/*
 * Open a connection with this login; NULL: no login. False: no connection may be opened now, see
 * lanes_why_none.
 */
__attribute__((warn_unused_result)) bool weir_lane_open(struct weir_lane *base, struct login *login,
                                                        enum lane_role role);

/* The lane is closed, or could not be opened. */
void weir_lane_lost(struct weir_lane *base);

/* Close the lane. No callback follows. */
void weir_lane_close(struct weir_lane *base);

/* Like weir_lane_close, for good. */
void weir_lane_fini(struct weir_lane *base);

#endif
