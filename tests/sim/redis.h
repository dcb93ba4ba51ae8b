/*
 * A model of Redis for the simulation: one server that answers its clients to the byte as Redis
 * does.
 *
 * The model makes no system call and has no thread, clock or randomness of its own. redis_clock
 * sets the time, random numbers come from the seed, and one redis_step executes one command. Equal
 * calls give equal bytes. The model shares no code with weir but slices. A command that the model
 * lacks is refused like an unknown command.
 *
 * Thread: none; one caller at a time. The process ends if memory runs out.
 */
#ifndef WEIR_SIM_REDIS_H
#define WEIR_SIM_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define REDIS_NEVER UINT64_MAX

struct redis; /* one server: its data, its users, its connections */
struct redis_conn;

/* How a server is started. All zero: Redis 7.0.15 without a password, with Redis' defaults. */
struct redis_config {
    const char *requirepass; /* NULL: none */
    /* lines of `user NAME rules ...`, as for ACL SETUSER; NULL: only the default user */
    const char *users;
    uint64_t seed;
    uint64_t time_us; /* Unix time at the start; 0: 1,700,000,000 s */
    /* major * 10000 + minor * 100 + patch: 60216, 70015, 70206, 70401, 80001; 0: 70015 */
    uint32_t version;
    uint32_t maxclients; /* 0: 10000 */
    uint32_t databases;  /* 0: 16 */
    uint64_t first_id;   /* first id of a connection; 0: 1 */
    /*
     * chance in 1/1000 that another connection goes on after a command, as with requests in pieces
     */
    uint32_t mixing;
    /* lua-time-limit: while a script runs longer, other requests get BUSY; 0: 5 s */
    uint64_t busy_us;
    /* a script begins, called for each key; NULL: none */
    void (*on_script)(struct slice key, uint64_t now_us);
    /* a request was answered BUSY, or a script was killed; NULL: none */
    void (*on_stuck)(bool is_killed);
    /* a request was answered READONLY, LOADING or MASTERDOWN; NULL: none */
    void (*on_not_run)(void);
    /* Called with each request before it is executed; NULL: none. */
    void (*on_request)(void *owner, const struct slice *argv, size_t argc);
    bool is_cluster; /* a node of a cluster: see redis_join */
    bool is_valkey;  /* `version` is Valkey's: 80001, or 70207 */
    /* there is a replica with all data from before the start, which never advances */
    bool has_replica;
    /* a script's status reply keeps its line ends, as in servers without the patch */
    bool forges;
};

/*
 * Compiles a script that servers load often, once for all servers. Call it before the first server.
 * `body` is the caller's and must stay valid. At most 32 scripts.
 */
void redis_prepare(struct slice body);

struct redis *redis_new(const struct redis_config *config);
void redis_free(struct redis *redis); /* frees its connections too */

/* Sets the server's Unix time, which may step back. Timers fire only by this clock. */
void redis_clock(struct redis *redis, uint64_t now_us);

/* `peer` is the address in CLIENT LIST, copied. `owner` is the caller's, see redis_owner. */
struct redis_conn *redis_connect(struct redis *redis, void *owner, const char *peer);
void *redis_owner(const struct redis_conn *conn);

/*
 * The id of CLIENT ID, and the name of the user. The name is valid until the next call for this
 * server.
 */
uint64_t redis_conn_id(const struct redis_conn *conn);
struct slice redis_conn_user(const struct redis_conn *conn);

/* True inside MULTI. */
bool redis_conn_is_in_multi(const struct redis_conn *conn);

/* Adds bytes from the peer to the input; copied. */
void redis_feed(struct redis_conn *conn, const char *data, size_t n);

/*
 * Executes one command of one connection, or one event that is due. Events are the time-out of a
 * blocked client, the end of a pause, and a piece of a slow script. As in Redis, a connection goes
 * on while it has complete requests, except for `mixing`. False: nothing to do before
 * redis_next_us, or before more bytes.
 */
bool redis_step(struct redis *redis);

/*
 * The Unix time in us at which an event is due; REDIS_NEVER: only bytes lead on. Expiry of keys is
 * no event. An expired key is removed on access, and some are removed every 100 ms with a step.
 */
uint64_t redis_next_us(const struct redis *redis);

/*
 * Output that was not taken yet, valid until the next call for this server. redis_taken removes the
 * first n bytes.
 */
struct slice redis_output(struct redis_conn *conn);
void redis_taken(struct redis_conn *conn, size_t n);

/*
 * A connection that may have new output, or wants to close, since it was last returned; NULL: no
 * more. Saves the caller a check of all connections after each step.
 */
struct redis_conn *redis_touched(struct redis *redis);

/*
 * True if the connection must be closed once its output is taken: after QUIT, a kill, a protocol
 * error.
 */
bool redis_wants_close(const struct redis_conn *conn);

/*
 * Removes the connection, whichever side has closed it. Input that was not executed is dropped, as
 * in Redis.
 */
void redis_disconnect(struct redis_conn *conn);

/*
 * A restart: all connections are closed and their handles invalid. Without keeps_data the keys are
 * lost. Scripts and CONFIG SET are always lost. Users are those of the start, with this password.
 */
void redis_restart(struct redis *redis, bool keeps_data, const char *requirepass);

/* A restart as another version. */
void redis_restart_as(struct redis *redis, bool keeps_data, const struct redis_config *config);

/* The server executes nothing for `us` from now on. */
void redis_slow_reader(struct redis *redis, uint64_t us);

/*
 * The server's disk takes no more snapshots, or takes them again. Without snapshots writes get
 * MISCONF.
 */
void redis_break_disk(struct redis *redis, bool is_broken);

/* The server becomes a replica of this address, as by REPLICAOF; NULL: a master. */
void redis_follow(struct redis *redis, const char *host, unsigned port);

/*
 * INFO shows this offset from now on, of the replication history with that number. `is_linked`: the
 * link to the master is up.
 */
void redis_set_offset(struct redis *redis, uint64_t offset, uint64_t history, bool is_linked);

/*
 * Redis Cluster (config.is_cluster): the server becomes one of n nodes, without known slots. The
 * server learns of other nodes only by these calls, and remembers them over a restart. Texts are
 * copied.
 */
#define REDIS_SLOTS 16384
#define REDIS_NODES_MAX 8
#define REDIS_NOBODY UINT8_MAX
struct redis_node {
    const char *id, *host;
    unsigned port;
};
void redis_join(struct redis *redis, const struct redis_node *nodes, unsigned n, unsigned myself);

/* These slots belong to `owner`, with a config epoch of at least `epoch`. */
void redis_own(struct redis *redis, unsigned first, unsigned last, unsigned owner, uint64_t epoch);

/* The slot is migrating to, or importing from, that node; REDIS_NOBODY: no longer. */
void redis_migrate(struct redis *redis, unsigned slot, unsigned to);
void redis_import(struct redis *redis, unsigned slot, unsigned from);

/* Moves one of the slot's keys, as by MIGRATE. False: the slot has no key. */
bool redis_move_key(struct redis *from, struct redis *to, unsigned slot);
bool redis_has_key_in(const struct redis *redis, unsigned slot);
uint16_t redis_slot_of(struct slice key);

/* Some commands with keys get a false redirect. */
enum redis_lie { REDIS_IS_HONEST, REDIS_NAMES_STRANGERS, REDIS_NAMES_ITSELF, REDIS_NAMES_THE_NEXT };
void redis_lie_about(struct redis *redis, enum redis_lie lie);

/*
 * Exchanges the keys of two servers with equal numbers of databases. Watchers and trackers are not
 * told.
 */
void redis_swap_keys(struct redis *a, struct redis *b);

/* The server loads its data for `us` from now on, and answers LOADING. */
void redis_load(struct redis *redis, uint64_t us);

#endif
