/*
 * A model of Redis, for simulation: one server that answers the bytes of its clients as Redis does, to the byte.
 *
 * It makes no system call, has no thread, no clock and no chance of its own: time is what redis_clock says, random
 * numbers come from the seed, and one redis_step carries out one command. The same calls give the same bytes. It shares
 * no code with weir but slices. What it cannot do it refuses as Redis refuses a command it does not know.
 *
 * Thread: none; a model is used by one caller at a time. Memory that cannot be had ends the process.
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

/* What a server is started with. All zero: Redis 7.0.15, no password, everything else as Redis has it by default. */
struct redis_config {
    const char *requirepass; /* NULL: none */
    const char *users;       /* lines of `user NAME rules ...`, as ACL SETUSER takes them; NULL: only the default one */
    uint64_t seed;
    uint64_t time_us;    /* unix time at the start; 0: 1,700,000,000 s */
    uint32_t version;    /* major * 10000 + minor * 100 + patch: 60216, 70015, 70206, 70401, 80001; 0: 70015 */
    uint32_t maxclients; /* 0: 10000 */
    uint32_t databases;  /* 0: 16 */
    uint64_t first_id;   /* of connections; 0: 1 */
    uint32_t
        mixing; /* chance in 1/1000 that after a command others have their turn, as where requests come in pieces */
    uint64_t busy_us; /* lua-time-limit: from then on others are told BUSY; 0: 5 s */
    void (*on_script)(struct slice key, uint64_t now_us); /* a script begins, each of its keys; NULL: nobody listens */
    void (*on_stuck)(bool is_killed); /* somebody was told BUSY, or a script ends as killed; NULL: nobody listens */
    void (*on_not_run)(void);         /* somebody was told READONLY, LOADING or MASTERDOWN; NULL: nobody listens */
    /* A connection's owner is told of each request before it is carried out, if there is a function. */
    void (*on_request)(void *owner, const struct slice *argv, size_t argc);
    bool is_cluster;  /* a node of one: see redis_join */
    bool is_valkey;   /* and version is Valkey's: 80001, or 70207 */
    bool has_replica; /* one that has all that was written before the server began, and stands still */
    bool forges;      /* what a script calls a status goes out with its line ends, as from servers without the patch */
};

/*
 * This script is loaded often, by whichever server: it is compiled now, once and for all, and keeps a place in memory.
 * Before the first server; `body` is the caller's and stays. At most 32.
 */
void redis_prepare(struct slice body);

struct redis *redis_new(const struct redis_config *config);
void redis_free(struct redis *redis); /* its connections too */

/* The server's unix time, which may step back. Nothing is due by time before it is told. */
void redis_clock(struct redis *redis, uint64_t now_us);

/* `peer` is the address as CLIENT LIST shows it, copied. `owner` is the caller's, see redis_owner. */
struct redis_conn *redis_connect(struct redis *redis, void *owner, const char *peer);
void *redis_owner(const struct redis_conn *conn);

/* The number that CLIENT ID tells of it; and the name of its user, which is good until the next call for this server. */
uint64_t redis_conn_id(const struct redis_conn *conn);
struct slice redis_conn_user(const struct redis_conn *conn);

/* True inside MULTI. */
bool redis_conn_is_in_multi(const struct redis_conn *conn);

/* Bytes from the peer: only taken in, copied. */
void redis_feed(struct redis_conn *conn, const char *data, size_t n);

/*
 * One command of one connection, or one event that is due: a blocked client's timeout, the end of a pause, a piece of a
 * slow script. As in Redis, who has his turn keeps it while he has asked for more; but see `mixing`. False: there is
 * nothing to do before redis_next_us or before bytes come.
 */
bool redis_step(struct redis *redis);

/*
 * The unix time in us at which something is due by itself; REDIS_NEVER: only bytes can make it go on. Keys are not waited
 * for: one whose time is over goes when it is looked at, or some at a time each 100 ms in which there is a step.
 */
uint64_t redis_next_us(const struct redis *redis);

/* Replies that are not taken yet, valid until the next call for this server; and taking the first n bytes of them. */
struct slice redis_output(struct redis_conn *conn);
void redis_taken(struct redis_conn *conn, size_t n);

/*
 * A connection whose output may have grown, or that wants to close, since it was last named here; NULL: no more. So
 * that a caller need not ask all connections after each step.
 */
struct redis_conn *redis_touched(struct redis *redis);

/* It has said QUIT, was killed, broke the protocol ...: it is to be closed when its output is taken. */
bool redis_wants_close(const struct redis_conn *conn);

/* Forgets the connection, whoever closed it. What it had fed and was not carried out is dropped, as Redis does. */
void redis_disconnect(struct redis_conn *conn);

/*
 * A restart: all connections are gone, their handles are invalid. Without its data the keys are lost; scripts and
 * settings by CONFIG SET always are. Users are again those of the start, with this password.
 */
void redis_restart(struct redis *redis, bool keeps_data, const char *requirepass);

/* The same as another version. */
void redis_restart_as(struct redis *redis, bool keeps_data, const struct redis_config *config);

/* A slow turn: the server carries out nothing for so long, beginning now. */
void redis_stall(struct redis *redis, uint64_t us);

/* Its disk takes no snapshot any more (or does again): writes are refused with MISCONF. */
void redis_break_disk(struct redis *redis, bool is_broken);

/* It follows the server at this address from now on, as by REPLICAOF; NULL: it is a master. */
void redis_follow(struct redis *redis, const char *host, unsigned port);

/* INFO tells this offset from now on, of the history of that number. `is_linked`: a replica hears its master. */
void redis_set_offset(struct redis *redis, uint64_t offset, uint64_t history, bool is_linked);

/*
 * Redis Cluster (config.is_cluster): it is one of n nodes from now on, and knows no slot's owner. It hears of the others
 * what it is told here, and keeps that over a restart. Texts are copied.
 */
#define REDIS_SLOTS 16384
#define REDIS_NODES_MAX 8
#define REDIS_NOBODY UINT8_MAX
struct redis_node {
    const char *id, *host;
    unsigned port;
};
void redis_join(struct redis *redis, const struct redis_node *nodes, unsigned n, unsigned myself);

/* These slots are that node's, whose config epoch is at least this. */
void redis_own(struct redis *redis, unsigned first, unsigned last, unsigned owner, uint64_t epoch);

/* The slot is on its way to, or from, that node; REDIS_NOBODY: no longer. */
void redis_migrate(struct redis *redis, unsigned slot, unsigned to);
void redis_import(struct redis *redis, unsigned slot, unsigned from);

/* One of the slot's keys goes over, as by MIGRATE. False: there is none. */
bool redis_move_key(struct redis *from, struct redis *to, unsigned slot);
bool redis_has_key_in(const struct redis *redis, unsigned slot);
uint16_t redis_slot_of(struct slice key);

/* Some commands with keys hear a redirect that is not true. */
enum redis_lie { REDIS_IS_HONEST, REDIS_NAMES_STRANGERS, REDIS_NAMES_ITSELF, REDIS_NAMES_THE_NEXT };
void redis_lie_about(struct redis *redis, enum redis_lie lie);

/* The keys of two servers with equally many databases change sides. Nobody is told. */
void redis_swap_keys(struct redis *a, struct redis *b);

/* It loads its data for so long, beginning now: LOADING. */
void redis_load(struct redis *redis, uint64_t us);

#endif
