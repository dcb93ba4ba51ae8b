/*
 * Chooses the master among several servers, which becomes the default node.
 *
 * Two forms. In a list the default node is the server that reports that it is a master. This server
 * stays until it is lost or reports that it is a replica. With sentinels the default node is the
 * server that the sentinels name, once that server reports that it is a master.
 *
 * Rules with sentinels:
 * - Claims of sentinels precede reports of servers: once another server is named, the old default
 *   node gets no more requests.
 * - The highest epoch wins. The epoch of a server is the lower median of the epochs of all claims
 *   for that server.
 * - While several sentinels answer, a claim of only one sentinel does not win.
 * - A claim does not count if its server has since reported that it is a replica. A winning server
 *   that has not reported that it is a master is asked. Its claim then wins only after 300 ms, or
 *   once the server is lost.
 * - A server with an older epoch than the known epoch wins on two conditions. Most known sentinels
 *   name the server, and at most one sentinel names the present server. Both hold in a deployment
 *   where epochs began anew. Without a newer epoch the named server changes at most once a second.
 * - The known epoch falls to the epoch of the named server if most known sentinels name that server
 *   and no sentinel names another. A sentinel with a huge epoch therefore cannot keep weir from
 *   following later failovers.
 *
 * Pure: no I/O, no clock. Texts belong to the caller, and are compared byte by byte.
 */
#ifndef WEIR_RUN_MASTERSHIP_H
#define WEIR_RUN_MASTERSHIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "upstream/node/node_role.h"

#define MASTERSHIP_CLAIMS 32 /* further claims are ignored */
/* least time between two changes without a newer epoch (chosen) */
#define MASTERSHIP_KEEP_NS (1 * NS_PER_S)
/* how long a server's own report is awaited; equal to the time-out of a sentinel's answer */
#define MASTERSHIP_WORD_NS (300 * NS_PER_MS)

enum mastership_form { MASTERSHIP_LIST, MASTERSHIP_SENTINELS };

enum mastership_reach {
    REACH_UNTRIED, /* the first attempt is not over */
    REACH_LOST,    /* no connection can be had */
    REACH_OK,      /* connected, and the server answers */
};

struct mastership_server {
    const char *key; /* unique */
    enum mastership_reach reach;
    enum node_role role; /* last reported role, also of a server that is lost now */
    uint64_t said_ns;    /* time of the report */
};

enum mastership_age { CLAIM_FRESH, CLAIM_OLD /* the sentinel does not answer any more */ };

/* The claim of one sentinel. */
struct mastership_claim {
    const char *sentinel; /* id of the sentinel: of several claims with one id the first counts */
    const char *server;   /* key of the named server; NULL: none */
    uint64_t epoch;
    uint64_t since_ns; /* since when the sentinel has named this server */
    enum mastership_age age;
};

/* The last choice; zeroed: none. */
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
    size_t n_sentinels; /* known sentinels, whether they answer or not */
    struct mastership_before before;
    uint64_t now_ns;
};

enum mastership_why {
    MASTERSHIP_GOOD,         /* there is a default node, and it is up */
    MASTERSHIP_LOST,         /* the default node has no connection, and no better server is known */
    MASTERSHIP_STARTS,       /* no default node yet: some server has not been tried */
    MASTERSHIP_NONE_ANSWERS, /* no default node: no server can be reached */
    MASTERSHIP_ALL_REPLICAS, /* no default node: no server that answers is a master */
    MASTERSHIP_SEVERAL,      /* no default node: `rivals` servers are masters */
    MASTERSHIP_NO_CLAIM,     /* no default node: no sentinel names a master */
    /* no default node: sentinels name different servers, or only servers with an older epoch */
    MASTERSHIP_DISAGREE,
    /* no default node: the server that sentinels name has not reported its role */
    MASTERSHIP_AWAITED,
    MASTERSHIP_IS_REPLICA, /* no default node: `named` reports that it is a replica */
};

enum mastership_pace {
    PACE_CALM,  /* ask once a second */
    PACE_HURRY, /* ask every 250 ms: there is no master, or the sentinels disagree */
};

struct mastership_choice {
    const char *default_node; /* where commands go; NULL: nowhere */
    /*
     * the default node, or the server that becomes the default node once it reports that it is a
     * master; to be dialled. NULL: none
     */
    const char *named;
    enum mastership_why why;
    enum mastership_pace pace;
    const char *ask; /* server to be asked at once for its role; NULL: none */
    /* a list: other servers that are masters; sentinels: fresh claims for other servers */
    size_t rivals;
    uint64_t epoch;      /* the known epoch from now on */
    uint64_t changed_ns; /* for the next struct mastership_before */
    uint64_t again_ns;   /* when to choose again even without a change; 0: never */
};

struct mastership_choice mastership_choose(const struct mastership_view *view);

#endif
