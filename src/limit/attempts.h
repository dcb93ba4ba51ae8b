/*
 * Logins under way, by address. The number of logins under way never exceeds the failures that
 * `auth-failures` leaves to the address.
 *
 * Problem: a failed login is charged when Redis answers. Until then any number of further logins of
 * the address could be sent. Mechanism: a login under way counts as a failure. A login begins while
 * the debt of failures plus the logins under way is below the burst. Otherwise the login waits, in
 * one FIFO for all workers. When a login ends, the next logins begin. If failures alone have used
 * up the burst, the next logins are barred. The debt plus the logins under way therefore never
 * exceeds the burst.
 *
 * Price: one mutex for all addresses, locked twice for each login, and only if a policy has
 * `auth-failures`. An attempt belongs to the login, not to the client: the client may close before
 * Redis answers.
 */
#ifndef WEIR_LIMIT_ATTEMPTS_H
#define WEIR_LIMIT_ATTEMPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "limit/gate_request.h"
#include "limit/figures/registry.h"

struct attempts;
struct attempt_queue;

enum attempt_state {
    ATTEMPT_NONE, /* not begun, not limited, or ended */
    ATTEMPT_WAITS,
    ATTEMPT_UNDER_WAY,
    ATTEMPT_BARRED,
    ATTEMPT_STARVED, /* no memory for the queue: the login must not go on */
};

/*
 * Embedded in a login. The login's worker writes the attempt. Any worker may decide the attempt,
 * under the lock.
 */
struct attempt {
    /*
     * While the attempt waits: link in the queue of the address. From the decision until
     * attempts_news returns the attempt: link in the news of the login's worker.
     */
    struct list in_list;
    struct attempt_queue *queue; /* queue of the login's address; NULL: none */
    unsigned worker;             /* index of the login's worker */
    enum attempt_state state;
};

/*
 * `wake` is called under the lock, on any thread, when attempts_news has an attempt for that
 * worker.
 */
struct attempts *attempts_new(unsigned n_workers, void (*wake)(void *worker));
void attempts_free(struct attempts *attempts);

/* Worker `index` can be woken from now on. With `worker` NULL the worker can no longer be woken. */
void attempts_set_worker(struct attempts *attempts, unsigned index, void *worker);

/*
 * Begins a login: returns ATTEMPT_UNDER_WAY, ATTEMPT_WAITS (attempts_news follows), ATTEMPT_BARRED
 * or ATTEMPT_STARVED. target->holders[PER_SUBJECT] is the subject of the client's address. The
 * caller holds a reference on this subject until attempts_end.
 */
enum attempt_state attempts_begin(struct attempts *attempts, struct attempt *attempt,
                                  const struct charge_target *target, unsigned worker,
                                  uint64_t now_ns);

/*
 * Ends the login, in any state; other logins of its address may begin. `is_failure`: the failure is
 * charged. After a reload target->policy may differ, or be NULL. With NULL nothing is charged.
 */
void attempts_end(struct attempts *attempts, struct attempt *attempt,
                  const struct charge_target *target, bool is_failure, uint64_t now_ns,
                  struct limit_counters *limit_counters);

/* Takes an attempt of this worker that waited and is now under way or barred. NULL: none. */
struct attempt *attempts_news(struct attempts *attempts, unsigned worker);

#endif
