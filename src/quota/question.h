/*
 * Writes the arguments for the script that decides a request.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_QUESTION_H
#define WEIR_QUOTA_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/decision_request.h"
#include "upstream/script.h"

/*
 * Writes the part of EVALSHA's ARGV that is equal for all keys, as RESP bulks: database, clock,
 * peek, parameters. Requests with the same script and the same bytes may share a batch. Within a
 * batch, requests with the same key and no token may share an entry with a count. `database` is the
 * client's database, used only with is_unprefixed. `channel` is where RELEASE publishes. `out` has
 * QUOTA_WORDS_ROOM bytes and the channel's length. *n_words: the number of bulks. Returns the
 * number of bytes.
 */
/* 16 rates of 4 numbers of 16 digits, and 8 parts of 4 words, with headers take 2300 bytes. */
#define QUOTA_WORDS_ROOM 3072
size_t question_words(const struct decision_request *ask, unsigned database, struct slice channel,
                      char *out, unsigned *n_words);

/* The most that question_work_us returns. */
#define QUOTA_WORK_MOST_US 1000

/*
 * Returns how long the request keeps Redis busy, in us, at worst: with a full log, and all rates
 * looked at. Measured, and rounded up.
 */
unsigned question_work_us(const struct decision_request *ask);

/*
 * The arguments of funnel.lua for rate i, in ns. In ARGV these arguments stand behind the rate's
 * step. A cost above the burst must never pass, not even after a wait: then inc > room, also with
 * WAIT.
 */
struct quota_gcra {
    int64_t inc, room, burst;
};
struct quota_gcra question_gcra(const struct decision_request *ask, unsigned i);

/*
 * The arguments of warm.lua, in ns: the debt that a call adds, the highest debt with which the call
 * still passes, and the warm-up.
 */
struct quota_warm {
    int64_t inc, most, warmup;
};
struct quota_warm question_warm(const struct decision_request *ask);

#endif
