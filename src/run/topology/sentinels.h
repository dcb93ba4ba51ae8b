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

#include "base/log.h"
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

/*
 * The claim of each sentinel that has ever said what it names, and the server that it names, as announced (NULL: none).
 * Returns how many. Good until the loop goes on.
 */
size_t sentinels_claims(const struct sentinels *sentinels, struct mastership_claim claims[SENTINELS_MOST],
                        const struct address *masters[SENTINELS_MOST]);

/* How many sentinels are known: configured, or learnt and heard. They need not answer now. */
size_t sentinels_count(const struct sentinels *sentinels);

/*
 * Replicas that at least one sentinel which answers tells of, as announced. Good until the loop
 * goes on.
 */
size_t sentinels_replicas(const struct sentinels *sentinels, const struct address *out[SENTINELS_REPLICAS_MOST]);

/* True once every sentinel that was configured has answered, or failed once. */
bool sentinels_are_settled(const struct sentinels *sentinels);

/* Why they name no master, for people: "sentinel 10.0.0.1:26379: connection refused". */
void sentinels_explain(const struct sentinels *sentinels, char *out, size_t room);

/* Asynchronous; frees itself. No callback comes after it. */
void sentinels_close(struct sentinels *sentinels);

#endif
