/*
 * How often one server may be asked: at most BUDGET_QUESTIONS in any BUDGET_NS, over all
 * connections to it.
 *
 * Zeroed: nothing has been asked. Time is an argument. Its owner's thread only.
 */
#ifndef WEIR_RUN_QUESTION_BUDGET_H
#define WEIR_RUN_QUESTION_BUDGET_H

#include <stdint.h>

#include "base/clock.h"

/*
 * Below ten a second, also where one question is late on its way and those behind it are not
 * (chosen).
 */
#define BUDGET_QUESTIONS 9
#define BUDGET_NS (1200 * NS_PER_MS)

struct question_budget {
    uint64_t asked_ns[BUDGET_QUESTIONS]; /* when the last questions were asked, as a ring; 0: never */
    unsigned n;
};

/* How long nothing may be asked yet. */
static inline uint64_t question_budget_wait(const struct question_budget *budget, uint64_t now_ns)
{
    uint64_t oldest_ns = budget->asked_ns[budget->n % BUDGET_QUESTIONS];
    return oldest_ns != 0 && now_ns - oldest_ns < BUDGET_NS ? BUDGET_NS - (now_ns - oldest_ns) : 0;
}

static inline void question_budget_spend(struct question_budget *budget, uint64_t now_ns)
{
    budget->asked_ns[budget->n++ % BUDGET_QUESTIONS] = now_ns;
}

#endif
