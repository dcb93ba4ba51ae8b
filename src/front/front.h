/*
 * What all clients of one worker share: settings, tables, lanes. Everything but the atomics is the worker thread's own.
 */
#ifndef WEIR_FRONT_FRONT_H
#define WEIR_FRONT_FRONT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "front/client/walk.h"
#include "front/commands/order.h"
#include "front/rules.h"
#include "limit/attempts.h"
#include "limit/command/command.h"
#include "limit/figures/counts.h"
#include "limit/figures/journal.h"
#include "limit/figures/ledger.h"
#include "limit/figures/observed.h"
#include "limit/figures/slowlog.h"
#include "limit/figures/top.h"
#include "limit/figures/whom.h"
#include "limit/reconnects.h"
#include "limit/refusal.h"
#include "limit/subjects.h"
#include "net/alarms.h"
#include "net/loop.h"
#include "upstream/node/nodes.h"
#include "upstream/node/topology.h"

/* Set by the main thread, see front/client/feed.h. */
struct memory_pressure {
    _Atomic unsigned step;        /* enum ladder_step */
    _Atomic uint64_t share_bytes; /* of unread replies that a client may hold */
    _Atomic uint64_t calls_bytes; /* of what is remembered of unanswered calls, on its own lane; 0: no limit */
};

/* The same for every worker. Nothing is set after the start but what stands at the end. */
struct front_settings {
    bool lanes_private;
    struct subjects *subjects;
    struct subjects *addresses;    /* of connections that are not bound yet, see front/client/unbound.h */
    struct subjects *key_subjects; /* those that the key of a command names: a table and a cap of their own */
    struct journal *journal;
    struct slowlog *slowlog;
    struct tally **tallies; /* of each worker */
    struct top **tops;      /* the same */
    struct whom **whoms;    /* the same */
    _Atomic uint8_t
        *stopping; /* by limit id, bits by enum whom_kind: what it has done in the last seconds; run/watch.h */
    struct slice upstream_user; /* weir's own */
    struct quota_settings quota;
    struct attempts *attempts;     /* logins under way; a worker that is woken calls login_look */
    struct reconnects *reconnects; /* connections closed for an outage, which may come again uncounted */
    unsigned n_workers;
    struct record *unlimited; /* of subjects that no policy binds */
    /* Take over an order; front_order_done follows on the worker's own thread. */
    void (*give)(void *worker, struct order *order);
    /* The last client of a worker that parts with them has gone; may be said twice. */
    void (*on_empty)(void *worker);
    struct hash_key share_key; /* of addresses, see upstream/lane/room.h */

    /* ---- changes; any thread ---- */

    _Atomic unsigned clients;               /* on all workers */
    _Atomic unsigned shaking;               /* of them, those that wait for a PROXY header or a TLS handshake */
    struct memory_pressure memory_pressure; /* the main thread sets its step; workers look */
};

/*
 * Handed out to every worker, and may be replaced while it runs. Each part is immutable and
 * counted.
 */
struct tables {
    struct command_table *commands;
    struct rules *rules; /* their policies are bound to `commands`; NULL: there are no tables here */
    struct topology *topology;
    unsigned generation; /* counts what has been handed out */
};

/* With one more reference of each part. */
struct tables tables_get(const struct tables *tables);
void tables_put(const struct tables *tables);

#define ENTRANCES_MAX 65 /* what listen may name, and the operators' socket */

/* How a client came in. */
struct entrance {
    const char *listener; /* the address it connected to, as configured */
    bool is_unix;
    bool is_tls;
    bool has_proxy_header; /* a header says first whom the connection comes from */
    bool is_admin;         /* the operator's socket */
    uint8_t number;        /* below ENTRANCES_MAX, and no other's */
    uint8_t index;         /* in counts.listeners, where the last is of many */
};

#define RECENT_SLOTS 64

/*
 * The commands that express.c looked up last, found by the eight bytes from their name on: a few
 * instructions in place of a hash. Emptied with the command table.
 */
struct recent {
    struct {
        uint64_t word;                 /* the name, zeros behind it; as it was written. 0: nothing is here */
        const struct command *command; /* NULL: it is not plain */
    } slots[RECENT_SLOTS];
};

/* The last refusal, as text: who sends many commands at once is told the same many times. */
#define REFUSALS_TOLD 16
struct last_refusal {
    const struct limit *limit; /* NULL: none */
    int64_t wait_ms;           /* as it tells; GATE_NEVER: that it will never pass */
    size_t len;                /* of one */
    uint32_t copies; /* how often it is in `text`, one behind the other; at least once, at most REFUSALS_TOLD times */
    char text[REFUSALS_TOLD * REFUSAL_ROOM];
};

/* Of the slow log: how many entries this worker adds. */
struct slow {
    uint64_t since_ns; /* of this second */
    unsigned n;        /* entries in it */
    uint64_t table_ns; /* when the command table last became another */
    uint16_t waits;    /* set of enum client_wait: what the request that is being taken has waited for */
};

/* Of front/route/fair_share.h. */
struct fair_timer {
    uv_timer_t timer;  /* runs while requests wait for their share */
    bool are_several;  /* the client whose requests are being taken is not alone */
    uint64_t taken_ns; /* when requests had been taken of the last that was not */
};

/* Of front/client/timeouts.h. */
struct timeouts {
    struct alarms alarms;   /* apart from those of commands that wait: these close clients */
    struct list handshakes; /* clients in the order in which theirs began */
    struct list unfinished; /* and their unfinished requests */
    struct list unbound;    /* struct unbound, in the order in which their time began */
    struct alarm handshake, request, idle, bind, vanished;
    struct alarm look; /* of front/route/outage.h */
};

#define DRAIN_NAMED 3 /* clients that are told of by name */
#define DRAIN_LINE 896

/* The clients that are still connected during a drain, for the log. */
struct drain_holders {
    unsigned n;
    unsigned n_named;
    char named[DRAIN_NAMED][DRAIN_LINE]; /* "10.1.2.3:4711 user:alice (in MULTI)" */
};

/* Of front/client/drain.h. */
struct client_drain {
    uv_timer_t tick;
    bool is_on;
    bool lets_operators_go; /* a successor has their socket */
    bool has_looked;        /* the first tick is over */
    uint32_t looked_ms;     /* when clients were looked at last, or the drain began: see timeouts_is_new */
    pthread_mutex_t lock;   /* of the next; held briefly */
    struct drain_holders holders;
};

struct account;
struct client_ops;

struct front {
    struct loop *loop;
    const struct client_ops *client_ops;
    struct front_settings *settings;
    unsigned index; /* of its worker */
    struct command_table *commands;
    struct rules *rules;        /* its policies are bound to `commands` */
    struct rules *rules_before; /* while some clients are still bound by them: binding_walk; else NULL */
    struct topology *topology;
    uint8_t generation : 1; /* of the rules: another than that of the ones before, and two are all there are */
    struct tally *tallies;  /* this worker's, by limit id */
    struct top *top;
    struct whom *whom;
    void *worker;         /* for settings->give */
    struct nodes nodes;   /* in the order of the topology's rows */
    struct quota *quota;  /* the LIMIT commands that Redis decides */
    struct alarms alarms; /* of commands that wait for their turn; a client that is bound by new rules asks again */
    struct alarms turns;  /* of LIMIT calls that wait: Redis has decided when, whatever the rules say now */
    struct list clients;  /* see struct waited_for */
    struct list outages;  /* struct outage, the one that has waited longest for a wake-up first */
    struct list agains;   /* struct again, of clients that requests have come back to */
    struct list remains;  /* of clients that have gone: front/client/remains.h */
    const struct entrance *entrances[ENTRANCES_MAX]; /* by number; NULL: nobody has come in there */
    struct list libraries;                           /* that its clients use: struct library */
    struct timeouts timeouts;
    struct walk binding_walk;  /* binds every client by new rules */
    struct walk round_walk;    /* of the order that is on its round here */
    struct walk vanished_walk; /* looks for clients on hosts that have vanished */
    struct fair_timer fair;
    struct client_drain drain; /* once weir stops */
    uint32_t n_read_sides;     /* clients that may read from replicas, so far: front/route/reads.h */
    struct recent recent;
    struct counts counts;
    struct answered answered; /* in this turn */
    struct slow slow;
    struct last_refusal last_refusal;
    struct demand_pending demand; /* of the client whose requests are being taken */
};

/*
 * Everything that this worker has to topology_home: where clients log in, where LIMIT's scripts run, and where
 * commands go as long as they have no slots.
 */
static inline struct nodes_row *front_home(const struct front *front)
{
    return nodes_home(&front->nodes);
}

static inline struct node *front_home_node(const struct front *front)
{
    return lanes_node(&front_home(front)->lanes);
}

/* That has become of n commands, or of one. */
static inline void front_count_many(struct front *front, const struct command *command, enum counted_result result,
                                    uint32_t n)
{
    count_add(&front->counts.commands[command->kind][result], n);
}

static inline void front_count_fate(struct front *front, enum outage_fate fate)
{
    count_add(&front->counts.fates[fate], 1);
}

static inline void front_count(struct front *front, const struct command *command, enum counted_result result)
{
    front_count_many(front, command, result, 1);
}

/* A client that was accepted has gone. */
void front_leave(struct front *front, const struct entrance *entrance);

/* Is the Redis behind older than 7.0, which words some errors otherwise? */
bool front_is_before_7(const struct front *front);

/*
 * The limit, of this account's policy, has stopped its subject, or would have: noted by name, for
 * the log.
 */
void front_note_stopped(struct front *front, const struct account *account, const struct limit *limit,
                        enum whom_kind kind);

#endif
