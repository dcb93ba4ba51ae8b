/*
 * One worker's questions to Redis' scripts and their answers: calls of one iteration of the loop
 * are sent together, as few batches; where each goes: routes.h.
 *
 * Questions about one key are decided in the order in which they were asked. After NOSCRIPT a batch
 * is sent once more, with its script, and no later question about its keys overtakes it. A batch
 * that Redis has not run is asked again (routes.h), and later questions about its keys wait behind
 * it. How long an answer may take: script_node.h.
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
    uint64_t n_batches; /* that were begun */
    const struct quota_settings *settings;
};

/* All outlive it; `alarms` has room for one. Out of memory ends the process. */
void exchange_init(struct exchange *exchange, struct nodes *nodes, struct alarms *alarms,
                   const struct quota_settings *settings, const struct batch_ops *calls);

uint64_t exchange_hash(const struct exchange *exchange, struct slice key);

/* The slot of the call's keys, which have one; 0 unless the upstream is a cluster. */
uint16_t exchange_slot(const struct exchange *exchange, const struct decision *decision);

/* True if the keys of a call on several keys have different slots: no node decides them together. */
bool exchange_is_crossing(const struct exchange *exchange, const struct decision *decision);

/*
 * Ask about its keys at the end of this iteration; the time for that began at decision->asked_ns. `hash` is
 * exchange_hash of decision->key. False: out of memory.
 */
bool exchange_ask(struct exchange *exchange, struct decision *decision, const struct batch_question *question,
                  uint64_t hash);

/* True if a question about the call's only key may be unanswered (false positives are possible). */
bool exchange_concerns(const struct exchange *exchange, const struct decision *decision, uint64_t hash);

#endif
