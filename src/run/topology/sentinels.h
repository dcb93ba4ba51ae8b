/*
 * The sentinels of one master: which server each of them names.
 *
 * All are asked together, each on a connection of its own (run/topology/sentinel.h): once a second, in a
 * hurry every 250 ms, and whenever one tells of a switch. Others are learnt from those that were
 * configured, at most SENTINELS_MOST in all, and dropped when none of these tells of them any more.
 * What changes is told to people once per change. Main thread.
 */
#ifndef WEIR_RUN_SENTINELS_H
#define WEIR_RUN_SENTINELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log_words.h"
#include "net/loop.h"
#include "run/config/address.h"
#include "run/topology/mastership.h"
#include "run/topology/sentinel.h"
#include "upstream/upstream.h"

struct sentinels;

struct sentinels_ops {
    /*
     * Claims, replicas, or whether a sentinel answers have changed. Never from within a call of
     * this header.
     */
    void (*on_claims)(void *arg);
    /* As finder_ops.on_news. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
};

/* Out of memory ends the process. */
struct sentinels *sentinels_open(struct loop *loop, const struct sentinels_settings *settings,
                                 const struct sentinels_ops *ops, void *arg);

/* Begin to ask: ops are called from now on. */
void sentinels_start(struct sentinels *sentinels);

/*
 * Read the password's file now. Sentinels also do every 10 s, and a second after a refusal. A new
 * password is tried at once by those that refused the one before.
 */
void sentinels_read_password(struct sentinels *sentinels);

/* How often they are asked from now on; a hurry begins at once. */
void sentinels_set_pace(struct sentinels *sentinels, enum mastership_pace pace);

/* What one sentinel names. */
struct sentinels_claim {
    char sentinel[SENTINEL_ID];   /* its own id, or its address while it has told none */
    const struct address *master; /* as the sentinel announces it; NULL: it names none. Good until the loop goes on */
    uint64_t epoch;
    uint64_t since_ns; /* since when it has named this server */
    enum mastership_age age;
};

/* Of each sentinel that has ever said what it names. Returns how many. */
size_t sentinels_claims(const struct sentinels *sentinels, struct sentinels_claim out[SENTINELS_MOST]);

/* How many sentinels are known: configured, or learnt and heard. They need not answer now. */
size_t sentinels_count(const struct sentinels *sentinels);

/*
 * Replicas that at least one sentinel which answers tells of, as announced. Good until the loop
 * goes on.
 */
size_t sentinels_replicas(const struct sentinels *sentinels, const struct address *out[SENTINELS_REPLICAS_MOST]);

/* True once every sentinel that was configured has answered, or failed once. */
bool sentinels_are_settled(const struct sentinels *sentinels);

/* For people: one sentinel. */
struct sentinels_row {
    char address[ADDRESS_TEXT]; /* as configured or announced */
    char names[ADDRESS_TEXT];   /* the server that it names; "": none */
    char why[128];              /* it does not serve weir; "": it does */
    uint64_t epoch;
};

/* Sentinel `i`; those that were configured come first. False: there are no more. */
bool sentinels_row(const struct sentinels *sentinels, size_t i, struct sentinels_row *out);

/* Asynchronous; frees itself. No callback comes after it. */
void sentinels_close(struct sentinels *sentinels);

#endif
