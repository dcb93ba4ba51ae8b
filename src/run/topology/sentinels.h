/*
 * The sentinels of one master: which server each sentinel names.
 *
 * All sentinels are asked at once, each on its own connection (run/topology/sentinel.h). Questions
 * are sent once a second, every 250 ms in a hurry, and after a reported switch. Configured
 * sentinels list further sentinels, which weir adds, up to SENTINELS_MOST in all. A learnt sentinel
 * is dropped when no configured sentinel lists it any more. Each change is logged once. Main
 * thread.
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
     * Claims or replicas have changed, or a sentinel has begun or ceased to answer. Never called
     * from within a function of this header.
     */
    void (*on_claims)(void *arg);
    /* As finder_ops.on_news. */
    void (*on_news)(void *arg, enum log_level level, const char *about, const char *line);
};

/* Out of memory ends the process. */
struct sentinels *sentinels_open(struct loop *loop, const struct sentinels_settings *settings,
                                 const struct sentinels_ops *ops, void *arg);

/* Begins to ask: ops are called from now on. */
void sentinels_start(struct sentinels *sentinels);

/*
 * Reads the password file now. Without a call the file is read every 10 s, and a second after a
 * refusal. A new password is tried at once on sentinels that have refused the old password.
 */
void sentinels_read_password(struct sentinels *sentinels);

/* Sets how often sentinels are asked. PACE_HURRY begins at once. */
void sentinels_set_pace(struct sentinels *sentinels, enum mastership_pace pace);

/*
 * Returns the number of claims: one of each sentinel that has ever named a server. `masters`: the
 * named servers as announced (NULL: none). Valid for this iteration.
 */
size_t sentinels_claims(const struct sentinels *sentinels,
                        struct mastership_claim claims[SENTINELS_MOST],
                        const struct address *masters[SENTINELS_MOST]);

/*
 * Returns the number of known sentinels: configured sentinels, and learnt sentinels that have ever
 * answered.
 */
size_t sentinels_count(const struct sentinels *sentinels);

/*
 * Returns the number of replicas that some answering sentinel lists, as announced. Valid for this
 * iteration.
 */
size_t sentinels_replicas(const struct sentinels *sentinels,
                          const struct address *out[SENTINELS_REPLICAS_MOST]);

/* True once every configured sentinel has answered, or failed once. */
bool sentinels_are_settled(const struct sentinels *sentinels);

/* Prints why no master is named, for people: "sentinel 10.0.0.1:26379: connection refused". */
void sentinels_explain(const struct sentinels *sentinels, char *out, size_t room);

/* Asynchronous; frees itself. No callback comes after this call. */
void sentinels_close(struct sentinels *sentinels);

#endif
