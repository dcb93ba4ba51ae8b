/*
 * Sends one worker's calls to Redis' scripts, and takes the answers. The calls of one event loop
 * iteration travel in as few batches as possible. routes.h chooses the node of each batch.
 *
 * Invariant: calls about one key are decided in order of arrival. After NOSCRIPT a batch is sent
 * once more, with its script, and no later call about its keys overtakes it. A batch that Redis has
 * not run is retried (routes.h), and later calls about its keys wait behind it. script_node.h
 * bounds the time for an answer.
 *
 * Owner: struct quota. Thread: the worker's.
 */
#ifndef WEIR_QUOTA_EXCHANGE_H
#define WEIR_QUOTA_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"
#include "net/alarms.h"
#include "quota/batch.h"
#include "quota/routes.h"
#include "quota/denials.h"

struct exchange {
    struct routes routes;
    uint64_t n_batches; /* number of batches begun */
    const struct quota_settings *settings;
};

/*
 * `nodes`, `alarms`, `settings` and `calls` outlive the exchange. `alarms` has room for one more
 * alarm. Out of memory ends the process.
 */
void exchange_init(struct exchange *exchange, struct nodes *nodes, struct alarms *alarms,
                   const struct quota_settings *settings, const struct batch_ops *calls);

uint64_t exchange_hash(const struct exchange *exchange, struct slice key);

/*
 * Returns the cluster slot of the call's keys, all of which have the same slot; 0 unless the
 * upstream is a cluster.
 */
uint16_t exchange_slot(const struct exchange *exchange, const struct decision *decision);

/* True if the keys of a call have different slots, so that no single node can decide the call. */
bool exchange_is_crossing(const struct exchange *exchange, const struct decision *decision);

/*
 * Adds the call to a batch, which is sent at the end of this iteration. upstream-timeout counts
 * from decision->asked_ns. `hash` is exchange_hash of decision->key. False: out of memory.
 */
bool exchange_ask(struct exchange *exchange, struct decision *decision,
                  const struct batch_question *question, uint64_t hash);

/*
 * True if a call about the decision's only key may be in flight or queued. False positives are
 * possible.
 */
bool exchange_concerns(const struct exchange *exchange, const struct decision *decision,
                       uint64_t hash);

#endif
