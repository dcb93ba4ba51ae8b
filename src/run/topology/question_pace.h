/*
 * When a server may be asked: how often any may be at most (question_budget), and when the next node of a cluster is
 * asked which nodes there are (cluster_pace):
 *
 *   never            within 100 ms of the last question, nor beyond the budget
 *   wanted           as soon as that allows; after answers that changed nothing 200, 400 .. 1000 ms after the last
 *   urgent, as slots have just lost their node: every 250 ms, wanted or not
 *   else             every 10 s
 *
 * Each pause is up to a fifth longer than that, so that several weirs do not ask together. Zeroed but for `random`:
 * nothing has been asked, and the first question is due. Time is an argument. Main thread. Pure.
 */
#ifndef WEIR_RUN_QUESTION_PACE_H
#define WEIR_RUN_QUESTION_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Below ten a second, also where one question is late on its way and those behind it are not (chosen). */
#define BUDGET_QUESTIONS 9
#define BUDGET_NS (1200 * NS_PER_MS)

/* One server is asked at most BUDGET_QUESTIONS in any BUDGET_NS, over all connections to it. Zeroed: nothing yet. */
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

#define CLUSTER_PACE_LEAST_NS (100 * NS_PER_MS)
#define CLUSTER_PACE_URGENT_NS (250 * NS_PER_MS) /* a failover is seen so soon (chosen) */
#define CLUSTER_PACE_MOST_NS (1 * NS_PER_S)      /* a wanted question waits no longer (chosen) */
#define CLUSTER_PACE_CALM_NS (10 * NS_PER_S)

enum cluster_pace_news {
    PACE_NEWS,   /* the answer changed something */
    PACE_AGAIN,  /* the answer is to be compared with that of another node */
    PACE_SAME,   /* the answer changed nothing */
    PACE_SILENT, /* there was none: another node is asked */
};

struct cluster_pace {
    struct question_budget budget;
    uint64_t random;   /* not 0; the owner seeds it */
    uint64_t asked_ns; /* when the last question was sent; 0: none was */
    uint64_t pause_ns; /* from there to the next that is wanted; 0: the least */
    uint64_t stretch;  /* of each pause, in thousandths: up to 200; drawn for each question */
    bool is_wanted;
    bool is_urgent; /* set by the owner */
};

/* There is a reason to ask. */
void cluster_pace_want(struct cluster_pace *pace);

/* A question has been sent. What was wanted before is answered by it. */
void cluster_pace_note_question(struct cluster_pace *pace, uint64_t now_ns);

/* What became of the question. */
void cluster_pace_note_answer(struct cluster_pace *pace, enum cluster_pace_news news);

/* When the next question is due, by the clock of now_ns; at most now_ns: at once. `calm_ns`: how often in calm. */
uint64_t cluster_pace_due(const struct cluster_pace *pace, uint64_t calm_ns, uint64_t now_ns);

#endif
