/*
 * A question: the words in which a script is asked for what an application asks for.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_QUESTION_H
#define WEIR_QUOTA_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"
#include "upstream/script.h"

/* Which script decides; SCRIPT_COUNT: none (RESET deletes; CHECK is not resolved). */
static inline enum script quota_ask_script(const struct quota_ask *ask)
{
    return quota_algorithm(ask->rule.kind)->script;
}

/*
 * Everything in EVALSHA's ARGV that does not belong to one key, as RESP bulks one behind the other: database, clock,
 * peek, parameters. Two asks with the same script and the same bytes may travel in one call; with the same key besides,
 * and without a token, they may be one with a count. *n_words is how many bulks there are; returns how many bytes.
 * `database` is the client's, used only where the key is raw; `channel` is where a release is told, used by RELEASE and
 * its like. `out` needs QUOTA_WORDS_ROOM bytes and the channel's length.
 */
#define QUOTA_WORDS_ROOM 3072 /* 16 rates of 4 numbers of 16 digits, and 8 parts of 4 words, with headers take 2300 */
size_t quota_ask_words(const struct quota_ask *ask, unsigned database, struct slice channel, char *out,
                       unsigned *n_words);

/* No call takes longer. */
#define QUOTA_WORK_MOST_US 1000

/*
 * How long Redis is busy with it, in us, at its worst: a full log, all rates against it. Measured, and rounded up; what
 * is bounded by it need not be exact.
 */
unsigned quota_ask_work_us(const struct quota_ask *ask);

/*
 * What funnel.lua is told of rate i, in ns, behind its step. A cost beyond the burst is never to pass, not even after a
 * wait: its inc is more than the room, and the room is not widened.
 */
struct quota_gcra {
    int64_t inc, room, burst;
};
struct quota_gcra quota_ask_gcra(const struct quota_ask *ask, unsigned i);

/* What warm.lua is told, in ns: what a call takes, the debt with which one still passes, and the warm-up. */
struct quota_warm {
    int64_t inc, most, warmup;
};
struct quota_warm quota_ask_warm(const struct quota_ask *ask);

#endif
