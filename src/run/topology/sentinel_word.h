/*
 * What one sentinel has said, and why it does not serve weir.
 *
 * Pure: time is an argument. Owned by run/topology/sentinel.c.
 */
#ifndef WEIR_RUN_SENTINEL_WORD_H
#define WEIR_RUN_SENTINEL_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "run/topology/mastership.h"
#include "upstream/control_reply.h"

#define SENTINELS_MOST 16
#define SENTINELS_REPLICAS_MOST 16
#define SENTINEL_ID 80 /* room for the id of a sentinel */

/* What it said holds so long without an answer: one answer may be late (chosen). */
#define SENTINEL_HOLDS_NS (2 * NS_PER_S)

/* Why it does not serve weir. */
enum sentinel_trouble {
    TROUBLE_NONE,
    TROUBLE_UNTRIED,       /* the first attempt is not over */
    TROUBLE_AWAY,          /* it cannot be reached */
    TROUBLE_SILENT,        /* it is connected, and does not answer */
    TROUBLE_UNREADABLE,    /* what it sends cannot be read */
    TROUBLE_WANTS_LOGIN,   /* weir has no password for it */
    TROUBLE_REFUSES_LOGIN, /* it does not accept the password */
    TROUBLE_FORBIDS,       /* weir's user may not ask */
    TROUBLE_NO_SENTINEL,   /* another kind of server */
    TROUBLE_NO_NAME,       /* it does not know the master's name */
    TROUBLE_NO_SERVER,     /* it names no server, or no address that could be one */
};

/* What it has said. Zeroed but for id and trouble: nothing. */
struct sentinel_word {
    enum sentinel_trouble trouble;
    char why[128];                 /* its or the system's words for the trouble; "": none */
    bool is_changed;               /* since the owner reset this */
    char id[SENTINEL_ID];          /* its own, or its address while it has told none */
    bool has_id;                   /* its own */
    bool has_named;                /* it has ever named a server, which is in `master` */
    struct sentinel_server master; /* port 0: it names none now */
    uint64_t since_ns;             /* since when it names this one */
    uint64_t answered_ns;          /* when it said so last; 0: what it said does not hold any more */
    struct sentinel_server peers[SENTINELS_MOST];
    size_t n_peers;
    struct sentinel_server replicas[SENTINELS_REPLICAS_MOST];
    size_t n_replicas;
};

/* The time is `now_ns`: does what it named last still hold? */
enum mastership_age sentinel_word_age(const struct sentinel_word *word, uint64_t now_ns);

/*
 * `why` is copied, without what does not belong on a terminal. Unless it may pass soon, no claim
 * holds any more.
 */
void sentinel_word_set_trouble(struct sentinel_word *word, enum sentinel_trouble trouble, struct slice why);

/* The answer to SENTINEL MYID. */
void sentinel_word_take_id(struct sentinel_word *word, const struct said *said);

/*
 * It names this server; with port 0 none, and `trouble` says why. True: it named another, or none,
 * before.
 */
bool sentinel_word_take_claim(struct sentinel_word *word, const struct sentinel_server *server,
                              enum sentinel_trouble trouble, struct slice why, uint64_t now_ns);

/*
 * The answers to SENTINEL SENTINELS and REPLICAS. Replicas that the sentinel does not reach are
 * left out.
 */
void sentinel_word_take_peers(struct sentinel_word *word, const struct said *said);
void sentinel_word_take_replicas(struct sentinel_word *word, const struct said *said);

#endif
