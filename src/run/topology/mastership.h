/*
 * Which of several servers is the master that weir serves: the home.
 *
 * Two forms. In a list the home is the server that says master, and it stays until it is lost or
 * says that it is a replica. With sentinels the home is the server that they name, once its own
 * last word is that it is a master.
 *
 * What holds with sentinels:
 * - Their word goes before the servers' own: once another server is named, the home before gets
 *   nothing more.
 * - The highest epoch wins. The epoch of a server is the lower middle of the epochs of all claims
 *   for it.
 * - Where several sentinels answer, a claim that only one of them makes does not win.
 * - A claim for a server that said, since the claim was made, that it is a replica does not count.
 *   Until the server has said anything since, it is asked, and the claim wins only after 300 ms or
 *   once the server is lost.
 * - A server with an older epoch than the known one wins only where most known sentinels name it
 *   and at most one names the present server: a deployment with epochs that began anew. For want of a
 *   newer epoch the named server changes at most once a second.
 * - The known epoch falls to that of the named server where most known sentinels name it and none
 *   names another. So a sentinel with a huge epoch cannot keep weir from following.
 *
 * Pure: no I/O, no clock. Texts belong to the caller, and are compared byte by byte.
 */
#ifndef WEIR_RUN_MASTERSHIP_H
#define WEIR_RUN_MASTERSHIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "upstream/node/node_role.h"

#define MASTERSHIP_CLAIMS 32                 /* of those beyond it nothing is known */
#define MASTERSHIP_KEEP_NS (1 * NS_PER_S)    /* the least time between two changes for want of a newer epoch (chosen) */
#define MASTERSHIP_WORD_NS (300 * NS_PER_MS) /* how long a server's own word is waited for: as for a sentinel's */

enum mastership_form { MASTERSHIP_LIST, MASTERSHIP_SENTINELS };

enum mastership_reach {
    REACH_UNTRIED, /* its first attempt is not over */
    REACH_LOST,    /* no connection to it can be had */
    REACH_OK,      /* weir has a connection to it, and it answers */
};

struct mastership_server {
    const char *key; /* no two are the same */
    enum mastership_reach reach;
    enum node_role role; /* its own last word, also where it is lost by now */
    uint64_t said_ns;    /* when that was */
};

enum mastership_age { CLAIM_FRESH, CLAIM_OLD /* the sentinel does not answer any more */ };

/* What one sentinel says. */
struct mastership_claim {
    const char *sentinel; /* its id: of several claims with the same id the first counts */
    const char *server;   /* key of the server that it names; NULL: it names none */
    uint64_t epoch;
    uint64_t since_ns; /* since when it has named this server */
    enum mastership_age age;
};

/* What has been chosen so far; zeroed: nothing. */
struct mastership_before {
    const char *named; /* mastership_choice.named; NULL: none */
    uint64_t epoch;
    uint64_t changed_ns;
};

struct mastership_view {
    enum mastership_form form;
    const struct mastership_server *servers;
    size_t n_servers;
    const struct mastership_claim *claims;
    size_t n_claims;
    size_t n_sentinels; /* known, whether they answer or not */
    struct mastership_before before;
    uint64_t now_ns;
};

enum mastership_why {
    MASTERSHIP_GOOD,         /* home is there */
    MASTERSHIP_LOST,         /* home has no connection, and nothing better is known */
    MASTERSHIP_STARTS,       /* no home yet: some server has not been tried */
    MASTERSHIP_NONE_ANSWERS, /* no home: no server can be reached */
    MASTERSHIP_ALL_REPLICAS, /* no home: no server that answers says master */
    MASTERSHIP_SEVERAL,      /* no home: `rivals` servers say master */
    MASTERSHIP_NO_CLAIM,     /* no home: no sentinel names one */
    MASTERSHIP_DISAGREE,     /* no home: each sentinel names another server, or those named have an older epoch */
    MASTERSHIP_AWAITED,      /* no home: the server that sentinels name has not said what it is */
    MASTERSHIP_IS_REPLICA,   /* no home: `named` says that it is a replica */
};

enum mastership_pace {
    PACE_CALM,  /* ask once a second */
    PACE_HURRY, /* ask every 250 ms: there is no master, or the sentinels disagree about it */
};

struct mastership_choice {
    const char *home;  /* where commands go; NULL: nowhere */
    const char *named; /* what home is or will be once it says master: to be dialled. NULL: none */
    enum mastership_why why;
    enum mastership_pace pace;
    const char *ask;     /* server to be asked at once for its role; NULL: none */
    size_t rivals;       /* a list: servers that say master beside home; sentinels: fresh claims for other servers */
    uint64_t epoch;      /* known from now on */
    uint64_t changed_ns; /* for the next struct mastership_before */
    uint64_t again_ns;   /* choose again then though nothing has changed; 0: no need */
};

struct mastership_choice mastership_choose(const struct mastership_view *view);

#endif
