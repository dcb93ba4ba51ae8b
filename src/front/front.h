/*
 * The state that all clients of one worker share: settings, tables, lanes. Only the worker's thread
 * touches a struct front. Exceptions: atomic fields, and drain.holders with its lock.
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
#include "front/commands/admin_command.h"
#include "front/rules.h"
#include "limit/attempts.h"
#include "limit/command/command.h"
#include "limit/figures/counts.h"
#include "limit/figures/journal.h"
#include "limit/figures/registry.h"
#include "limit/figures/observed.h"
#include "limit/figures/slowlog.h"
#include "limit/figures/top.h"
#include "limit/figures/offenders.h"
#include "limit/reconnects.h"
#include "limit/refusal.h"
#include "limit/subjects.h"
#include "net/alarms.h"
#include "net/loop.h"
#include "upstream/node/nodes.h"
#include "upstream/node/topology.h"

/* The main thread writes these fields, and workers read them: see front/client/feed.h. */
struct memory_pressure {
    _Atomic unsigned step;        /* enum ladder_step */
    _Atomic uint64_t share_bytes; /* bytes of unread replies that one client may hold */
    /* bytes that unanswered calls on one private lane may take; 0: no limit */
    _Atomic uint64_t calls_bytes;
};

/* Settings that all workers share. Only the fields at the end change after the start. */
struct front_settings {
    bool lanes_private;
    struct subjects *subjects;
    /* addresses of connections that are not bound yet; see front/client/unbound.h */
    struct subjects *addresses;
    /* subjects that keys of commands name, in a table with a maximum of its own */
    struct subjects *key_subjects;
    struct journal *journal;
    struct slowlog *slowlog;
    struct limit_counters **limit_counters; /* counters of each worker */
    struct top **tops;
    struct offenders **all_offenders; /* recent offenders of each worker */
    _Atomic uint8_t
        /*
         * indexed by limit id: one bit for each enum offender_kind that the limit has caused
         * lately; run/watch.c sets the bits
         */
        *stopping;
    struct slice upstream_user; /* the user that weir itself logs in as */
    struct quota_settings quota;
    /*
     * logins in flight, by address; a worker that is woken for one of these logins calls login_look
     */
    struct attempts *attempts;
    /*
     * addresses of connections that an outage closed; for each closed connection, one new
     * connection of the address is not counted
     */
    struct reconnects *reconnects;
    unsigned n_workers;
    struct policy_state *unlimited; /* counters of subjects that no policy binds */
    /*
     * Hands an admin command to the main thread. The main thread later has front_admin_command_done
     * called on the worker's own thread.
     */
    void (*give)(void *worker, struct admin_command *admin_command);
    /* Called when the last client of a draining worker has gone. May be called twice. */
    void (*on_empty)(void *worker);
    struct hash_key share_key; /* hash key for addresses; see upstream/lane/room.h */

    /* ---- fields that change; any thread ---- */

    _Atomic unsigned clients; /* clients of all workers */
    /* clients that wait for a PROXY header or a TLS handshake, of all workers */
    _Atomic unsigned shaking;
    struct memory_pressure memory_pressure; /* written by the main thread, read by workers */
};

/*
 * The tables that the main thread hands to every worker. A worker may get new tables while it runs.
 * Each part is immutable and reference-counted.
 */
struct tables {
    struct command_table *commands;
    struct rules *rules; /* policies made for `commands`; NULL: these tables are empty */
    struct topology *topology;
    unsigned generation; /* incremented with each set of tables that is handed out */
};

/* Adds a reference to each part. */
struct tables tables_get(const struct tables *tables);

/* Drops a reference to each part. */
void tables_put(const struct tables *tables);

#define LISTEN_ADDRESSES_MAX 65 /* 64 addresses of `listen`, and the operators' socket */

/* The properties of a listener that its clients need. */
struct listen_address {
    const char *listener; /* the address, as configured */
    bool is_unix;
    bool is_tls;
    /* a PROXY header precedes each connection and tells the client's address */
    bool has_proxy_header;
    bool is_admin;  /* the operators' socket */
    uint8_t number; /* unique, below LISTEN_ADDRESSES_MAX */
    /* index in counts.listeners; all listeners beyond the first 16 share the last entry */
    uint8_t index;
};

#define RECENT_SLOTS 64

/*
 * A cache of the commands that fast_path.c looked up last. The key is the name itself: at most
 * eight bytes, as one word. A look-up takes a few instructions and no hash table. The cache is
 * emptied when the command table changes.
 */
struct recent {
    struct {
        /* the name as the client wrote it, padded with zeros; 0: the entry is empty */
        uint64_t word;
        const struct command *command; /* NULL: not a plain command */
    } slots[RECENT_SLOTS];
};

/* A cache of the last refusal, as text. A pipeline often gets the same refusal many times. */
#define REFUSALS_TOLD 16
struct last_refusal {
    const struct limit *limit; /* NULL: none */
    int64_t wait_ms; /* wait that the text names; GATE_NEVER: the request can never pass */
    size_t len;      /* bytes of one copy */
    uint32_t copies; /* copies in `text`, one after the other: 1 to REFUSALS_TOLD */
    char text[REFUSALS_TOLD * REFUSAL_ROOM];
};

/* Bounds how many entries this worker adds to the slow log. */
struct slow {
    uint64_t since_ns; /* when the current second began */
    unsigned n;        /* entries in this second */
    uint64_t table_ns; /* when the command table changed last */
    uint16_t waits;    /* set of enum client_wait: the waits of the request that is being taken */
};

/* State of front/route/fair_share.h. */
struct fair_timer {
    uv_timer_t timer;  /* runs while requests wait for their share */
    bool are_several;  /* subjects other than the present client's send requests, too */
    uint64_t taken_ns; /* when requests were last taken while `are_several` */
};

/* State of front/client/timeouts.h. */
struct timeouts {
    struct alarms alarms;   /* a heap of its own: these alarms close clients */
    struct list handshakes; /* clients, by the time when their handshake began */
    struct list unfinished; /* clients, by the time when their unfinished request began */
    struct list unbound;    /* struct unbound, by the time when UNBOUND_NS began */
    struct alarm handshake, request, idle, bind, vanished;
    struct alarm look; /* alarm of front/route/outage.h */
};

#define DRAIN_NAMED 3 /* clients named in a line of the log */
#define DRAIN_LINE 896

/* The clients that are still connected during a drain, for the log. */
struct drain_holders {
    unsigned n;
    unsigned n_named;
    char named[DRAIN_NAMED][DRAIN_LINE]; /* "10.1.2.3:4711 user:alice (in MULTI)" */
};

/* State of front/client/drain.h. */
struct client_drain {
    uv_timer_t tick;
    bool is_on;
    bool lets_operators_go; /* a successor process has the operators' socket */
    bool has_looked;
    /* when clients were looked at last, or the drain began; see timeouts_is_new */
    uint32_t looked_ms;
    pthread_mutex_t lock; /* protects `holders`; held briefly */
    struct drain_holders holders;
};

struct charge_target;
struct client_ops;

struct front {
    struct loop *loop;
    const struct client_ops *client_ops;
    struct front_settings *settings;
    unsigned index; /* index of this worker */
    struct command_table *commands;
    struct rules *rules; /* policies made for `commands` */
    /* the previous rules, while binding_walk still binds clients to `rules`; else NULL */
    struct rules *rules_before;
    struct topology *topology;
    /* flips when new rules come; 1 bit is enough to tell `rules` from `rules_before` */
    uint8_t generation : 1;
    struct limit_counters *limit_counters; /* of this worker, by limit id */
    struct top *top;
    struct offenders *offenders;
    void *worker;        /* argument of settings->give and on_empty */
    struct nodes nodes;  /* rows in the order of the topology's nodes */
    struct quota *quota; /* LIMIT commands that Redis decides */
    /* alarms of commands that a limit delays; new rules make these alarms ring early */
    struct alarms alarms;
    /*
     * alarms of LIMIT WAIT calls; Redis sets the times of these alarms, and new rules do not change
     * the times
     */
    struct alarms quota_alarms;
    struct list clients; /* in the order of waited_for.looked_ms */
    /* struct outage: the client that has waited longest for a wake-up is first */
    struct list outages;
    /*
     * struct again: clients with requests that Redis refused without running them; weir sends these
     * requests again
     */
    struct list agains;
    struct list remains; /* struct remains: calls of closed clients; front/client/remains.h */
    /* by listen_address.number; NULL: the listener has accepted no client yet */
    const struct listen_address *listen_addresses[LISTEN_ADDRESSES_MAX];
    struct list libraries; /* struct library: the libraries that clients of this worker use */
    struct timeouts timeouts;
    struct walk binding_walk; /* binds every client to new rules */
    struct walk round_walk;   /* walk of the admin command that visits all clients of this worker */
    struct walk vanished_walk; /* finds clients on hosts that have vanished */
    struct fair_timer fair;
    struct client_drain drain; /* in use from the moment when weir begins to stop */
    uint32_t n_read_sides;     /* number of clients so far with a read_side: front/route/reads.h */
    struct recent recent;
    struct counts counts;
    struct answered answered; /* calls answered in this iteration */
    struct slow slow;
    struct last_refusal last_refusal;
    /* peak rates of the client from which requests are being taken */
    struct peak_rates_pending peak_rates;
};

/*
 * Returns the row of the default node (topology_default_node). Clients log in at the default node,
 * the scripts of LIMIT run at it, and commands without a cluster slot go to it.
 */
static inline struct nodes_row *front_default_row(const struct front *front)
{
    return nodes_default_row(&front->nodes);
}

static inline struct node *front_default_node(const struct front *front)
{
    return lanes_node(&front_default_row(front)->lanes);
}

/* Counts n commands of this kind that had this result. */
static inline void front_count_many(struct front *front, const struct command *command,
                                    enum counted_result result, uint32_t n)
{
    count_add(&front->counts.commands[command->kind][result], n);
}

static inline void front_count_fate(struct front *front, enum outage_fate fate)
{
    count_add(&front->counts.fates[fate], 1);
}

static inline void front_count(struct front *front, const struct command *command,
                               enum counted_result result)
{
    front_count_many(front, command, result, 1);
}

/* A client has gone: decrements settings->clients, unless the client used the operators' socket. */
void front_leave(struct front *front, const struct listen_address *listen_address);

/* True if Redis is older than 7.0: the wording of some errors differs. */
bool front_is_before_7(const struct front *front);

/*
 * Adds the subject of this charge target to the recent offenders. The limit has stopped the
 * subject, or would have stopped it outside shadow mode.
 */
void front_note_stopped(struct front *front, const struct charge_target *target,
                        const struct limit *limit, enum offender_kind kind);

#endif
