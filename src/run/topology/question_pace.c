#include "run/topology/question_pace.h"

#define JITTER_MOST 200 /* thousandths of an interval */

void cluster_pace_want(struct cluster_pace *pace)
{
    pace->is_wanted = true;
}

static uint64_t draw(struct cluster_pace *pace)
{
    uint64_t x = pace->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return pace->random = x;
}

void cluster_pace_note_question(struct cluster_pace *pace, uint64_t now_ns)
{
    question_budget_spend(&pace->budget, now_ns);
    pace->asked_ns = now_ns;
    pace->jitter = draw(pace) % (JITTER_MOST + 1);
    pace->is_wanted = false;
}

static uint64_t pause_of(const struct cluster_pace *pace)
{
    return pace->pause_ns != 0 ? pace->pause_ns : CLUSTER_PACE_LEAST_NS;
}

void cluster_pace_note_answer(struct cluster_pace *pace, enum cluster_pace_news news)
{
    uint64_t longer_ns = 2 * pause_of(pace);
    if (news == PACE_SAME)
        pace->pause_ns = longer_ns < CLUSTER_PACE_MOST_NS ? longer_ns : CLUSTER_PACE_MOST_NS;
    else
        pace->pause_ns = CLUSTER_PACE_LEAST_NS;
    pace->is_wanted |= news == PACE_AGAIN || news == PACE_SILENT;
}

uint64_t cluster_pace_due(const struct cluster_pace *pace, uint64_t calm_ns, uint64_t now_ns)
{
    uint64_t after_ns = pace->is_wanted ? pause_of(pace) : calm_ns;
    if (pace->asked_ns == 0)
        return now_ns;
    if (pace->is_urgent && after_ns > CLUSTER_PACE_URGENT_NS)
        after_ns = CLUSTER_PACE_URGENT_NS;
    if (after_ns < CLUSTER_PACE_LEAST_NS)
        after_ns = CLUSTER_PACE_LEAST_NS;
    uint64_t due_ns = pace->asked_ns + after_ns + after_ns / 1000 * pace->jitter;
    uint64_t budget_ns = now_ns + question_budget_wait(&pace->budget, now_ns);
    return due_ns > budget_ns ? due_ns : budget_ns;
}
