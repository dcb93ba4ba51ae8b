/*
 * Logins under way, by address: never more than the failures of their address have left of `auth-failures`.
 *
 * Problem: a login that turns out to be wrong is charged when Redis answers, and until then any number of others of the
 * same address could be sent. Mechanism: a login under way counts as a failure. It begins while the debt of failures
 * and the logins under way are below the burst. Otherwise it waits, in one FIFO for all workers. When a login ends, the
 * next
 * ones begin, or are barred because failures alone have used the allowance up. So debt and logins under way are never
 * more than the burst. Price: one mutex for all addresses, taken twice for each login, and only where a policy has
 * `auth-failures`. An attempt belongs to the login and not to the client, which may be gone before Redis answers.
 */
#ifndef WEIR_LIMIT_ATTEMPTS_H
#define WEIR_LIMIT_ATTEMPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "limit/ask.h"
#include "limit/figures/ledger.h"

struct attempts;
struct attempt_queue;

enum attempt_state {
    ATTEMPT_NONE, /* not begun, not limited, or ended */
    ATTEMPT_WAITS,
    ATTEMPT_UNDER_WAY,
    ATTEMPT_BARRED,
    ATTEMPT_STARVED, /* there was no memory for its queue: the login must not go on */
};

/* Embedded in a login. Its worker writes it, and under the lock any worker decides it. */
struct attempt {
    struct list in_list; /* its queue, while it waits; its worker's news, from the decision until that has seen it */
    struct attempt_queue *queue; /* of its address; NULL: none */
    unsigned worker;             /* index of its worker */
    enum attempt_state state;
};

/* `wake` is called under the lock, on any thread: attempts_news of that worker has something. */
struct attempts *attempts_new(unsigned n_workers, void (*wake)(void *worker));
void attempts_free(struct attempts *attempts);

/* Worker `index` can be woken from now on; with `worker` NULL it cannot any more. */
void attempts_set_worker(struct attempts *attempts, unsigned index, void *worker);

/*
 * A login wants to begin: ATTEMPT_UNDER_WAY, ATTEMPT_WAITS (attempts_news follows), ATTEMPT_BARRED or ATTEMPT_STARVED.
 * The account's holder PER_SUBJECT is the subject of the client's address; the caller holds it until attempts_end.
 */
enum attempt_state attempts_begin(struct attempts *attempts, struct attempt *attempt, const struct account *account,
                                  unsigned worker, uint64_t now_ns);

/*
 * The login has ended, in whichever state it is; others of its address may begin. `is_failure`: it is charged. The
 * account's policy may be another one than at the beginning, or NULL, after a reload: then nothing is charged.
 */
void attempts_end(struct attempts *attempts, struct attempt *attempt, const struct account *account, bool is_failure,
                  uint64_t now_ns, struct tally *tallies);

/* An attempt of this worker that has waited and was decided: under way or barred now. NULL: there is none. */
struct attempt *attempts_news(struct attempts *attempts, unsigned worker);

#endif
