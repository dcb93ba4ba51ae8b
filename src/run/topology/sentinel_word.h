/*
 * The reports of one sentinel, and why it does not serve weir.
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

/* A claim stays valid for this time without a new answer: one answer may be late (chosen). */
#define SENTINEL_HOLDS_NS (2 * NS_PER_S)

/* Why the sentinel does not serve weir. */
enum sentinel_trouble {
    TROUBLE_NONE,
    TROUBLE_UNTRIED,       /* the first attempt is not over */
    TROUBLE_AWAY,          /* cannot be reached */
    TROUBLE_SILENT,        /* connected, and does not answer */
    TROUBLE_UNREADABLE,    /* sends replies that cannot be parsed */
    TROUBLE_WANTS_LOGIN,   /* weir has no password for it */
    TROUBLE_REFUSES_LOGIN, /* does not accept the password */
    TROUBLE_FORBIDS,       /* weir's user lacks the right to ask */
    TROUBLE_NO_SENTINEL,   /* another kind of server */
    TROUBLE_NO_NAME,       /* does not know the master's name */
    TROUBLE_NO_SERVER,     /* names no server, or no usable address */
};

/* The reports. Zeroed except id and trouble: none. */
struct sentinel_word {
    enum sentinel_trouble trouble;
    /* text of the sentinel or the system for the trouble; "": none */
    char why[128];
    bool is_changed; /* the reports have changed since the owner cleared this flag */
    /* the sentinel's own id, or its address until it has reported an id */
    char id[SENTINEL_ID];
    bool has_id; /* `id` is the sentinel's own id */
    /* the sentinel has ever named a server; the last one is in `master` */
    bool has_named;
    struct sentinel_server master; /* port 0: no server is named now */
    uint64_t since_ns;             /* since when the sentinel names this server */
    /* when the sentinel last named the server; 0: the claim is not valid any more */
    uint64_t answered_ns;
    struct sentinel_server peers[SENTINELS_MOST];
    size_t n_peers;
    struct sentinel_server replicas[SENTINELS_REPLICAS_MOST];
    size_t n_replicas;
};

/* CLAIM_FRESH if the last claim is still valid at `now_ns`. */
enum mastership_age sentinel_word_age(const struct sentinel_word *word, uint64_t now_ns);

/*
 * Sets the trouble. `why` is copied, with '?' for bytes that are not printable. Ends the validity
 * of the claim, unless the trouble may pass soon.
 */
void sentinel_word_set_trouble(struct sentinel_word *word, enum sentinel_trouble trouble,
                               struct slice why);

/* Takes the answer to SENTINEL MYID. */
void sentinel_word_take_id(struct sentinel_word *word, const struct said *said);

/*
 * Takes a claim for this server; port 0: for none, because of `trouble`. True if the named server
 * has changed.
 */
bool sentinel_word_take_claim(struct sentinel_word *word, const struct sentinel_server *server,
                              enum sentinel_trouble trouble, struct slice why, uint64_t now_ns);

/* Takes the answer to SENTINEL SENTINELS. */
void sentinel_word_take_peers(struct sentinel_word *word, const struct said *said);

/* Takes the answer to SENTINEL REPLICAS. Replicas that the sentinel does not reach are left out. */
void sentinel_word_take_replicas(struct sentinel_word *word, const struct said *said);

#endif
