/*
 * The connection on which one worker calls weir's scripts in one node: opened when it is needed, loads the scripts
 * first.
 *
 * Questions are answered in order. When the connection is lost, open questions remain unanswered: nothing is asked
 * twice.
 */
#ifndef WEIR_QUOTA_SCRIPT_CONN_H
#define WEIR_QUOTA_SCRIPT_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "quota/circuit.h"
#include "upstream/lane/weir_lane.h"
#include "upstream/script.h"

struct script_conn;

struct script_conn_ops {
    /* Its state may have changed: call script_conn_find again. */
    void (*on_change)(struct script_conn *conn);
    /* The whole reply to the oldest question; good during the call. */
    void (*on_reply)(struct script_conn *conn, struct slice reply);
    /* Redis refused the login or a script; no question was sent. script_conn_why_none has its error. */
    void (*on_unloaded)(struct script_conn *conn);
    /* The connection is lost: no open question will be answered. */
    void (*on_lost)(struct script_conn *conn);
};

struct script_conn {
    const struct script_conn_ops *ops;
    struct weir_lane base;
    struct login *login; /* that it logs in by, one reference; NULL: not at all */
    char shas[SCRIPT_COUNT][SCRIPT_SHA_LEN + 1];
    unsigned n_loads;   /* how many SCRIPT LOADs were answered; SCRIPT_COUNT: all of shas are known */
    unsigned n_lost;    /* how often in a row the connection was lost while scripts were loaded */
    struct bytes reply; /* to the oldest question, as far as it has come */
    char *refusal;      /* heap: the error reply with which Redis refused login or scripts; NULL: none */
    struct circuit circuit;
    uint64_t
        whole_ns; /* since when calls carry their scripts (EVAL), as Redis lets weir do nothing else; 0: they do not */
    unsigned n_sent;  /* how many scripts were sent on this connection */
    bool is_away;     /* while there is none: no connection can be had, or the circuit is open */
    bool is_let_in;   /* Redis has taken the first of them, or will have none loaded */
    bool is_unloaded; /* Redis has refused another one */
};

enum script_conn_state {
    SCRIPT_CONN_READY,
    SCRIPT_CONN_NOT_YET, /* being opened: on_change follows */
    SCRIPT_CONN_NONE,    /* the upstream is away, does not answer (one may be being opened), or refuses */
};

/*
 * Takes over the reference on `login`; NULL: it does not log in. `like`: another connection, of which the scripts'
 * hashes are taken if they are known there; or NULL.
 */
void script_conn_init(struct script_conn *conn, struct lanes *lanes, struct login *login,
                      const struct script_conn *like, const struct script_conn_ops *ops);

/* Its state; opens it if need be. */
enum script_conn_state script_conn_find(struct script_conn *conn);

/* The loop's time. */
static inline uint64_t script_conn_now_ns(const struct script_conn *conn)
{
    return lanes_loop(conn->base.lanes)->now_ns;
}

/*
 * True if there is none because its node cannot be reached or does not answer. A node that is there, but does not let
 * weir in or does not decide, is no reason to let any call through.
 */
static inline bool script_conn_is_away(const struct script_conn *conn)
{
    return conn->is_away;
}

/* When a question that was asked then has waited too long; UINT64_MAX: never. */
static inline uint64_t script_conn_due_ns(const struct script_conn *conn, uint64_t asked_ns)
{
    return circuit_due_ns(asked_ns, conn->base.lanes->upstream->timeout_ns);
}

/*
 * A question has waited too long: the circuit opens. If it was sent (is_owing) its connection is closed, and on_lost
 * follows at once. A connection that is still being opened, or loads scripts, stays: it closes the circuit once it is
 * ready.
 */
void script_conn_give_up(struct script_conn *conn, bool is_owing);

/*
 * Tries to reach the node if the circuit is open. Returns when the next probe is due; UINT64_MAX: the circuit is
 * closed.
 * on_change follows a connection that is ready, and must call script_conn_find for the connection to load scripts.
 */
uint64_t script_conn_probe(struct script_conn *conn);

/* Why there is none, as an error reply. */
struct slice script_conn_why_none(const struct script_conn *conn);

/* True if calls carry their scripts. */
static inline bool script_conn_is_whole(const struct script_conn *conn)
{
    return conn->whole_ns != 0;
}

/*
 * True if the error reply says that a call was not carried out because of the way in which it named its script: it is
 * to be sent again, and to carry it.
 */
bool script_conn_takes_back(struct script_conn *conn, struct slice reply);

/*
 * An error of a script or about it: where it says that weir lacks a right, one that says which, in `out`
 * (LACK_ERROR_ROOM bytes) and in node->lacks; else the same. script_conn_note_decided: a script has run.
 */
struct slice script_conn_explain(const struct script_conn *conn, struct slice error, char *out);
void script_conn_note_decided(const struct script_conn *conn);

/* on_change follows at the end of this turn. */
void script_conn_wake(struct script_conn *conn);

/* The script's SHA1 for EVALSHA; only when it is ready. */
struct slice script_conn_sha(const struct script_conn *conn, enum script script);

/*
 * Send a question: a complete request. is_asking: with ASKING before it in the same piece, which has no answer here.
 * False: out of memory.
 */
__attribute__((warn_unused_result)) bool script_conn_ask(struct script_conn *conn, bool is_asking, const char *request,
                                                         size_t n);

/* The connection is closed; no callback follows but on_change. */
void script_conn_close(struct script_conn *conn);

/* Gives up the connection; no callback follows. */
void script_conn_fini(struct script_conn *conn);

#endif
