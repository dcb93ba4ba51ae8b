/*
 * When a server may be asked (question_budget), and when the next node of a cluster is asked
 * CLUSTER NODES (cluster_pace):
 *
 *   never    within 100 ms of the last question, or when the budget is used up
 *   wanted   as soon as allowed; after answers without news, 200, 400 .. 1000 ms later
 *   urgent   every 250 ms, wanted or not: slots have just lost their node
 *   else     every 10 s
 *
 * Each interval is up to a fifth longer, so that several weirs do not ask together. A state that is
 * zeroed except for `random` has no questions so far, and the first question is due. Time is an
 * argument. Main thread. Pure.
 */
#ifndef WEIR_RUN_QUESTION_PACE_H
#define WEIR_RUN_QUESTION_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * The server sees less than ten questions a second, even if one question is delayed on its way and
 * the next ones are not (chosen).
 */
#define BUDGET_QUESTIONS 9
#define BUDGET_NS (1200 * NS_PER_MS)

/*
 * Bounds questions to one server, over all connections, to BUDGET_QUESTIONS in any BUDGET_NS.
 * Zeroed: no questions so far.
 */
struct question_budget {
    uint64_t asked_ns[BUDGET_QUESTIONS]; /* ring of the times of the last questions; 0: none */
    unsigned n;
};

/* Returns the time in ns until the next question is allowed. */
static inline uint64_t question_budget_wait(const struct question_budget *budget, uint64_t now_ns)
{
    uint64_t oldest_ns = budget->asked_ns[budget->n % BUDGET_QUESTIONS];
    return oldest_ns != 0 && now_ns - oldest_ns < BUDGET_NS ? BUDGET_NS - (now_ns - oldest_ns) : 0;
}

static inline void question_budget_spend(struct question_budget *budget, uint64_t now_ns)
{
    budget->asked_ns[budget->n++ % BUDGET_QUESTIONS] = now_ns;
}

#define CLUSTER_PACE_LEAST_NS (100 * NS_PER_MS)
#define CLUSTER_PACE_URGENT_NS (250 * NS_PER_MS) /* how soon a failover is seen (chosen) */
#define CLUSTER_PACE_MOST_NS (1 * NS_PER_S)      /* longest wait of a wanted question (chosen) */
#define CLUSTER_PACE_CALM_NS (10 * NS_PER_S)

enum cluster_pace_news {
    PACE_NEWS,   /* the answer changed something */
    PACE_AGAIN,  /* the answer must be compared with another node's */
    PACE_SAME,   /* the answer changed nothing */
    PACE_SILENT, /* no answer: another node is asked */
};

struct cluster_pace {
    struct question_budget budget;
    uint64_t random;   /* not 0; seeded by the owner */
    uint64_t asked_ns; /* when the last question was sent; 0: never */
    /* from the last question to the next wanted question; 0: CLUSTER_PACE_LEAST_NS */
    uint64_t pause_ns;
    /* how much longer each interval is, in thousandths: up to 200; drawn for each question */
    uint64_t jitter;
    bool is_wanted;
    bool is_urgent; /* set by the owner */
};

/* Notes a reason to ask. */
void cluster_pace_want(struct cluster_pace *pace);

/* Notes that a question was sent, which serves all earlier wants. */
void cluster_pace_note_question(struct cluster_pace *pace, uint64_t now_ns);

/* Notes the result of the question. */
void cluster_pace_note_answer(struct cluster_pace *pace, enum cluster_pace_news news);

/*
 * Returns when the next question is due, by the clock of now_ns. A result of at most now_ns means
 * now. `calm_ns`: the interval without a reason to ask.
 */
uint64_t cluster_pace_due(const struct cluster_pace *pace, uint64_t calm_ns, uint64_t now_ns);

#endif
