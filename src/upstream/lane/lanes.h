/*
 * All lanes of one worker to one node: which list each is in, and opening them as far as there may be more.
 *
 * What is built on that has files of its own: the shared lane of a session (shared.h), lending private ones (lend.h),
 * what becomes of lanes and whether the node is there (health.h), what takes too long (timers.h). The worker's thread
 * only; closing is asynchronous, and ends with the loop.
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

#define LANES_CLEAN_NS (1 * NS_PER_S) /* how long a used lane may take to say that it is clean */
#define LANES_NO_RESET 8              /* logins that are remembered whose lanes cannot be reset */

struct lanes_ops {
    /* Redis has refused the last password by which lanes of this user could be opened: it may be gone. */
    void (*on_user_refused)(void *arg, const struct auth_user *user);
    /* Is any client left that came in this epoch of the node and has not logged in? */
    bool (*has_epoch)(void *arg, const struct node *node, uint32_t epoch);
    /* A lane may be had again: at most so many of the clients that wait for that are to look. False: none waits. */
    bool (*on_chance)(void *arg, unsigned most);
};

struct lanes {
    struct lane_base base;
    struct upstream *upstream; /* the node's */
    bool keeps_shared;         /* a shared lane for new clients is kept open; else lanes are opened when asked for */
    bool is_closing;
    bool is_retired; /* its node is not in the topology any more: lanes end as they are done, none is opened */
    const struct lanes_ops *ops;
    void *arg;

    struct list lists[LIST_COUNT]; /* by enum lane_list; the last to enter is at the end */
    uint32_t n_idle;               /* in LIST_IDLE */
    uv_timer_t tick;  /* runs while a lane is being opened or is retired, a reconnect is due, or riders hope for room */
    uv_timer_t sweep; /* runs while lanes are idle or owe answers, and always with an upstream-timeout */
    uint64_t looked_ns; /* when lanes were asked last whether their host has vanished */
    _Atomic uint64_t
        oldest_ns;       /* how long the oldest call had waited at the last sweep (lane_owes_ns); any thread reads */
    uv_timer_cb on_tick; /* timers.c's */
    uv_timer_cb on_sweep;
    unsigned n_timers;                      /* that are not closed in full */
    void (*on_unused)(struct lanes *lanes); /* its last lane or timer is closed in full; NULL: nobody is told */

    uint64_t wary_until_ns; /* a huge reply has come on a shared lane not long ago, see shared_be_wary; 0: none has */
    uint64_t doubted_ns;    /* when a lane was opened last to ask for the node's role */
    uint64_t login_refused_ns; /* when Redis refused weir's own login last; 0: it has not since it was set */
    struct backoff backoff;    /* between attempts to find a node that is away */
    struct backoff starved;    /* the system has refused a descriptor or memory: no lane is opened before it is over */
    enum err down;       /* the last attempt failed: answer with this at once, try in the background; else ERR_NONE */
    uint64_t missed_ns;  /* when the dial began that was the first to fail since a lane was ready; 0: none has failed */
    enum err why_none;   /* why the last rider that asked got none, if not for that; else ERR_NONE */
    bool is_turned_away; /* it is down since Redis turns connections away: it has too many */
    bool is_garbled;     /* what came last in place of a greeting's answer was no RESP */
    unsigned n_shut;     /* connections closed while they were greeted, and none since that was good */
    uint64_t again_ns;   /* since when n_again is counted: a second, or until one is let in if that takes longer */
    unsigned n_again;    /* connections that were tried again at once, without any back-off */
    bool has_let_in;     /* since again_ns one was ready */
    struct login *no_reset[LANES_NO_RESET]; /* one reference each; the newest in place of the oldest */
    unsigned next_no_reset;
};

/*
 * To this node; `ops` are called with `arg`. timers_init is to follow. `before` are the lanes to the node whose place
 * it takes, which has the same fair queue; NULL: there are none.
 */
void lanes_init(struct lanes *lanes, struct commons *commons, struct node *node, const struct lanes *before,
                const struct lanes_ops *ops, void *arg);

/*
 * Its node is not in the topology any more: no lane is opened. Shared lanes finish their calls, private ones go when
 * their owners give them back; clients that wait for one that is being opened look again. Weir's own stay.
 */
void lanes_retire(struct lanes *lanes);

/* Close every lane. No rider may be left. */
void lanes_close(struct lanes *lanes);

/* After the last lane and timer has been closed in full. */
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
    return lanes->base.commons->loop;
}

static inline struct room *lanes_room(const struct lanes *lanes)
{
    return &lanes->upstream->room;
}

/* The session of a client that connects now. */
struct lane_key lanes_newcomer(const struct lanes *lanes);

/* ---- may there be one? ---- */

/* May lanes be asked for? If not, lanes_why_none says what clients are told. */
bool lanes_are_up(const struct lanes *lanes);

/* Has the system just refused a descriptor or memory for one? */
bool lanes_are_starved(const struct lanes *lanes);

/* What a client is told when there is no lane for it. */
enum err lanes_why_none(const struct lanes *lanes);

/* The same where room is not why. */
enum err lanes_why_away(const struct lanes *lanes);

/* From now on there is none, for this reason, until one could be opened, which is tried in the background. */
void lanes_go_down(struct lanes *lanes, enum err why);

/* A client waits for the node, which is away: it is tried again soon, whatever the back-off is. */
void lanes_hurry(struct lanes *lanes);

/* Wake the rider's link in a moment (20 ms at most), so that it looks again. */
void lanes_wake_soon(struct lanes *lanes, struct rider *rider);

/*
 * True if none could be had because connections are opened at upstream-dial-rate: the rider's link is woken in a
 * moment.
 */
__attribute__((warn_unused_result)) bool lanes_wait_to_dial(struct lanes *lanes, struct rider *rider);

/*
 * None could be had because there are too many, and other workers may only keep some of theirs: they have been told.
 * Then the rider's link is woken in a moment.
 */
__attribute__((warn_unused_result)) bool lanes_may_hope(struct lanes *lanes, struct rider *rider);

/* May one more lane be theirs? Then it counts for them, until room_give_back. False: lanes_why_none. */
__attribute__((warn_unused_result)) bool lanes_use(struct lanes *lanes, struct room_share share);

/* Of a rider, or of none. */
struct room_share lanes_share_of(const struct rider *rider);

/*
 * A new connection of role LANE_SHARED or LANE_PRIVATE, which counts for `share`; a private one is `owner`'s. NULL:
 * there may be none now.
 */
struct lane *lanes_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *owner,
                        struct room_share share);

/* ---- which there are ---- */

/* A lane of role LANE_SHARED in this list, of this session; NULL: there is none. */
struct lane *lanes_find(struct lanes *lanes, enum lane_list in, const struct lane_key *key);

/* Has the node taken a connection that is not ready yet? */
bool lanes_is_taken(const struct lanes *lanes);

void lanes_move(struct lane *lane, enum lane_list in);
void lanes_take(struct lane *lane); /* out of its list, for good: it is closed */

/* Is it the shared one for clients that have just connected? */
bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane);

/*
 * Is it the session of who came when no password was wanted, and now one is? Then no lane opened from now on is let
 * in as theirs were: those that are there are all there will be.
 */
bool lanes_is_past(const struct lanes *lanes, const struct lane_key *key);

/*
 * True if it was greeted after a password had been set that its session came before: all it answers is NOAUTH.
 */
bool lanes_is_shut_out(const struct lane *lane);

/* False: Redis has just refused each password of weir's own login, and would again. */
bool lanes_may_log_in(const struct lanes *lanes);

/* Is it a shared lane that does nothing, and can be opened again when somebody asks for it? */
bool lanes_is_expendable(const struct lanes *lanes, const struct lane *lane);

/*
 * Close one that is kept for the next owner, the one kept longest; the last connection of a user only where all are
 * that. False: there is none.
 */
bool lanes_close_idle(struct lanes *lanes);

/* Close the oldest shared lane that nobody remembers, if there are more than `most` of them. */
bool lanes_close_unleased(struct lanes *lanes, unsigned most);

/* ---- the two timers ---- */

/* Have timers.c look in a moment at what is a matter of milliseconds; and of seconds. */
void lanes_tick(struct lanes *lanes);
void lanes_sweep(struct lanes *lanes);

/* ---- lanes of weir's own ---- */

/*
 * A lane of weir's own, asked for again whenever it is needed: what auth lanes, the script connection and the release
 * listener have in common. Embedded in each.
 */
struct weir_lane {
    struct lanes *lanes; /* to the node that it leads to */
    struct rider rider;
    struct link hollow; /* no connection: a link only to be woken, for the rider */
    bool is_open;       /* rider.lane is the lane, or is being opened */
};

/* For the rider_ops' to_link. */
#define WEIR_LANE_TO_LINK ((ptrdiff_t)offsetof(struct weir_lane, hollow) - (ptrdiff_t)offsetof(struct weir_lane, rider))

/* Of zeroed memory. Both tables outlive it; link_ops has only an on_wake. */
void weir_lane_init(struct weir_lane *base, struct lanes *lanes, const struct rider_ops *rider_ops,
                    const struct link_ops *link_ops);

/* Open a connection that logs in so; NULL: not at all. False: there may be none now, see lanes_why_none. */
__attribute__((warn_unused_result)) bool weir_lane_open(struct weir_lane *base, struct login *login,
                                                        enum lane_role role);

/* The rider has heard that the lane is gone, or could not be had. */
void weir_lane_lost(struct weir_lane *base);

/* Let it go. Nothing follows. */
void weir_lane_close(struct weir_lane *base);

/* The same, for good. */
void weir_lane_fini(struct weir_lane *base);

#endif
