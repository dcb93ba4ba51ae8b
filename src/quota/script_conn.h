/*
 * The connection on which one worker asks Redis' scripts: opened when it is needed, with the scripts loaded first.
 *
 * Questions are answered in order. When the connection is lost, whoever asked does not learn what became of it: nothing
 * is asked twice.
 */
#ifndef WEIR_QUOTA_SCRIPT_CONN_H
#define WEIR_QUOTA_SCRIPT_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "net/link.h"
#include "upstream/lanes.h"
#include "upstream/script.h"

struct script_conn;

struct script_conn_ops {
    /* It may be ready now, or there is none: try again. */
    void (*on_change)(struct script_conn *conn);
    /* The whole reply to the oldest question. */
    void (*on_reply)(struct script_conn *conn, struct slice reply);
    /* Redis takes no scripts now, or nobody in, and nothing has been asked: script_conn_why_none has its words. */
    void (*on_unloaded)(struct script_conn *conn);
    /* None of the questions will be answered. */
    void (*on_lost)(struct script_conn *conn);
};

struct script_conn {
    const struct script_conn_ops *ops;
    struct lanes *lanes;
    struct lane_key key;
    struct rider rider;
    struct link hollow; /* what the rider is woken by */
    char shas[SCRIPT_COUNT][SCRIPT_SHA_LEN + 1];
    unsigned n_loads;    /* answered of those that were sent first; SCRIPT_COUNT: the hashes are known */
    unsigned n_lost;     /* how often in a row it was lost while they were loaded */
    struct bytes reply;  /* to the oldest question, as far as it has come */
    char *refusal;       /* why Redis did not let it be opened or loaded, as an error reply; NULL: nothing said */
    uint64_t refused_ns; /* when that was, or 0 */
    bool is_open;        /* rider.lane is its lane, or is being opened */
    unsigned n_sent;     /* scripts that this connection was sent */
    bool is_let_in;      /* it has taken the first of them */
    bool is_unloaded;    /* one of the others was refused */
};

enum script_conn_state {
    SCRIPT_CONN_READY,
    SCRIPT_CONN_NOT_YET, /* on_change follows */
    SCRIPT_CONN_NONE,    /* the upstream is away */
};

/* `login` is kept; NULL: as Redis takes whoever does not log in. */
void script_conn_init(struct script_conn *conn, struct lanes *lanes, struct login *login,
                      const struct script_conn_ops *ops);

/* Open it if need be. */
enum script_conn_state script_conn_find(struct script_conn *conn);

/* Why there is none, as an error reply. */
struct slice script_conn_why_none(const struct script_conn *conn);

/* Wake up on_change at the end of this turn. */
void script_conn_wake(struct script_conn *conn);

/* For EVALSHA; only while it is ready. */
struct slice script_conn_sha(const struct script_conn *conn, enum script script);

/* One question: a complete request. False: out of memory. */
__attribute__((warn_unused_result)) bool script_conn_ask(struct script_conn *conn, const char *request, size_t n);

/* Let go of the connection; no callback follows. */
void script_conn_fini(struct script_conn *conn);

#endif
