/*
 * All lanes of one worker to one node: which list each is in, the shared one for a session, reconnecting, and whether
 * the node is there. Private ones are lent by lend.h, doors are doors.h's.
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
#include "upstream/node.h"
#include "upstream/outbox.h"

#define LANES_IDLE_MAX 128                    /* a worker's idle lanes; more are closed at once */
#define LANES_IDLE_NS (3 * NS_PER_S)          /* and these after so long, spare ones too */
#define LANES_IDLE_TIGHT_NS (100 * NS_PER_MS) /* the same where there may not be many more */
#define LANES_UNUSED_NS (60 * NS_PER_S)       /* and a shared lane that nobody has used for so long */
#define LANES_UNLEASED_MAX 16 /* shared lanes of a worker that nobody remembers: the oldest goes first */
#define LANES_SLUGGISH_NS                                                                                              \
    (10 * NS_PER_MS) /* a shared lane silent for so long, and four round trips, gets no new calls */
#define LANES_LOGIN_AGAIN_NS                                                                                           \
    (500 * NS_PER_MS)                    /* after Redis has refused weir's own login it is not asked for so long */
#define LANES_SPARE 2                    /* shared lanes opened beforehand when one takes no more calls */
#define LANES_ABSORB_BYTES 8388608       /* a worker's memory for replies that are taken in for others' sake at once */
#define LANES_ABSORB_LATE_BYTES 67108864 /* and for those whose readers have done nothing for a tick */
#define LANES_UNREAD_NS (5 * NS_PER_S)   /* how long a reader may do nothing before output-limit is held against it */
#define LANES_STALL_NS (1 * NS_PER_S)    /* how long calls may wait behind a reply that is not read */
#define LANES_CLEAN_NS (1 * NS_PER_S)    /* how long a used lane may take to say that it is clean */
#define LANES_GONE_NS (10 * NS_PER_S)    /* how long a client that has closed its side is waited for */
#define LANES_SHUT_MAX                                                                                                 \
    8 /* connections closed while they are greeted, as those of a deleted user are: then Redis is away */
#define LANES_AGAIN_MAX                                                                                                \
    40 /* connections closed by Redis in a second, or while none is let in, before it is taken for away */
#define LANES_NO_RESET 8 /* logins whose lanes are known not to be reset */

struct lanes_ops {
    /* Redis does not accept this login any more: who came in by it must go. */
    void (*on_login_refused)(void *arg, const struct login *login);
    /* Is anybody left who came in this epoch and has not logged in? */
    bool (*has_epoch)(void *arg, uint32_t epoch);
};

struct lanes {
    struct loop *loop;
    struct node *node;         /* where they lead; one reference */
    struct upstream *upstream; /* the node's */
    bool keeps_shared;         /* a shared lane for new clients is kept open */
    const struct lanes_ops *ops;
    void *arg;

    struct outbox outbox;          /* of all of them, for one at a time */
    struct list lists[LIST_COUNT]; /* enum lane_list; who came last at the end */
    uint32_t n_idle;
    struct list hoping;  /* riders, by waiting: some lane may be given back for them */
    uv_async_t shed;     /* another worker needs the connections that are only kept */
    uv_timer_t tick;     /* runs while a lane is being opened or is retired, a reconnect is due, or somebody hopes */
    uv_timer_t sweep;    /* runs while lanes are idle, and always with an upstream-timeout */
    struct login *login; /* weir's own, as it is now; NULL: it does not log in */
    uint64_t login_refused_ns; /* when Redis refused it last; 0: it has not since it was set */
    struct backoff backoff;
    struct backoff starved; /* the system has refused a descriptor or memory: no lane is opened before it is over */
    uint32_t absorbed;      /* bytes of replies that were taken in, until their readers have caught up */
    enum err down;     /* the last attempt failed: answer with this at once, try in the background; else ERR_NONE */
    enum err why_none; /* why the last one who asked got none, if not for that; else ERR_NONE */
    bool is_garbled;   /* what came last in place of a greeting's answer was no RESP */
    unsigned n_shut;   /* connections closed while they were greeted, and none since that was good */
    uint64_t again_ns; /* since when n_again is counted: a second, or until one is let in if that takes longer */
    unsigned n_again;  /* connections that were tried again at once, without any back-off */
    bool has_let_in;   /* since again_ns one was ready */
    uint32_t n_broken; /* ready lanes that Redis, or whatever is between, has ended */
    bool is_closing;
    struct login *no_reset[LANES_NO_RESET]; /* held; the newest in place of the oldest */
    unsigned next_no_reset;
    struct lane_counts counts;
};

void lanes_init(struct lanes *lanes, struct loop *loop, struct node *node, bool keeps_shared,
                const struct lanes_ops *ops, void *arg);

/* Weir's own login from now on, for lanes that are opened; those that are open stay. Out of memory: nothing changes. */
void lanes_set_login(struct lanes *lanes, struct slice user, struct slice password);

/* Open what is kept open for new clients. */
void lanes_start(struct lanes *lanes);

/* The login of clients that do not log in; NULL: none. */
static inline struct login *lanes_lent(const struct lanes *lanes)
{
    return lanes->upstream->lends_login ? lanes->login : NULL;
}

/* The session of a client that connects now. */
struct lane_key lanes_newcomer(const struct lanes *lanes);

/* May lanes be asked for? If not, lanes_why_none says what clients are told. */
bool lanes_are_up(const struct lanes *lanes);

/* What a client is told when there is no lane for it. */
enum err lanes_why_none(const struct lanes *lanes);

/*
 * None could be had because there are too many, and other workers may only keep some of theirs: they have been told.
 * Then the rider's link is woken in a moment.
 */
__attribute__((warn_unused_result)) bool lanes_may_hope(struct lanes *lanes, struct rider *rider);

/* Has the lane been silent for long, though calls wait for answers? Then new ones had better go elsewhere. */
bool lanes_is_sluggish(const struct lanes *lanes, const struct lane *lane);

/*
 * The shared lane for a session, opened for `rider` if there is none: ready, or to be waited for; NULL when the
 * upstream is away, there are too many lanes, or memory is out.
 */
struct lane *lanes_shared(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/* The same, if there is one; opens none. */
struct lane *lanes_find_shared(struct lanes *lanes, const struct lane_key *key);

/* A lane of weir's own, of role LANE_SCRIPT or LANE_DOOR; ready never, to be waited for. NULL as above. */
struct lane *lanes_open_for_weir(struct lanes *lanes, const struct lane_key *key, enum lane_role role,
                                 struct rider *rider);

/* What lane_gather was given goes out: its memory may be used for something else. */
void lanes_flush(struct lanes *lanes);

/* Close every lane; asynchronous. No rider may be left. */
void lanes_close(struct lanes *lanes);

/* ---- from a lane ---- */

void lanes_on_connected(struct lanes *lanes, struct lane *lane);
void lanes_on_ready(struct lanes *lanes, struct lane *lane, bool needs_auth);
/* It is closed, after having been ready or not. False: who waits for it is to be told that there is none. */
bool lanes_on_failed(struct lanes *lanes, struct lane *lane, bool was_ready, const char *why);
/* A lane does not go on because a reply is not read. */
void lanes_on_stalled(struct lanes *lanes, struct lane *lane);
/* No new calls for this shared lane. False: it must go on, as none like it could be opened. */
bool lanes_retire(struct lanes *lanes, struct lane *lane);
/* May the rest of this reply be taken in, though its reader does not keep up? Until lanes_absorbed. */
bool lanes_absorb(struct lanes *lanes, struct lane *lane, struct rider *rider);
void lanes_absorbed(struct lanes *lanes, struct rider *rider);
/* A retired lane has answered everything. */
void lanes_on_emptied(struct lanes *lanes, struct lane *lane);
/* Nobody remembers this lane any more. */
void lanes_on_unleased(struct lanes *lanes, const struct lane *lane);

/* ---- for upstream/lend and upstream/timers ---- */

static inline struct lane *lanes_at(struct list *at)
{
    return container_of(at, struct lane, in_list);
}

/* A new connection. NULL: there may be none now. */
struct lane *lanes_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *rider);

void lanes_move(struct lane *lane, enum lane_list in);
void lanes_take(struct lane *lane); /* out of its list, for good: it is closed */

/* So long, but for tests in a hurry. */
uint64_t lanes_time(const struct lanes *lanes, uint64_t ns);

/* A lane is kept, and could be another's: whoever has hoped for longest is woken. False: nobody here hopes. */
bool lanes_wake_hoping(struct lanes *lanes);

/* Close the oldest shared lane that nobody remembers, if there are more than `most` of them. */
bool lanes_close_unleased(struct lanes *lanes, unsigned most);

/* Is it the shared one for clients that have just connected? */
bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane);

/* Is it a shared lane that does nothing, and can be opened again when somebody asks for it? */
bool lanes_is_expendable(const struct lanes *lanes, const struct lane *lane);

/* Try the upstream again if that is due. Will it be, later? */
bool lanes_retry(struct lanes *lanes, uint64_t now_ns);

#endif
