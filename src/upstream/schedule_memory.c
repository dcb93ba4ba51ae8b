/*
 * What is remembered of subjects whose riders have all gone: what they owe, and what their requests cost. Else who comes anew, or
 * is somebody else in between, would owe nothing and be unknown each time.
 *
 * A table of fixed size, by hash: who comes later takes the place of who was there.
 */
#include "upstream/schedule.h"

#include <stdlib.h>

#define PLACES 64                /* a power of two */
#define LASTS_NS (10 * NS_PER_S) /* since something of the subject was answered */

struct remembered {
    uint64_t hash; /* of the subject */
    struct backlog backlog;
};

struct schedule_memory {
    struct remembered places[PLACES];
};

static struct remembered *place_of(const struct schedule *schedule, const struct subject *subject)
{
    return &schedule->memory->places[subject->hash & (PLACES - 1)];
}

static bool make(struct schedule *schedule)
{
    if (schedule->memory != NULL)
        return true;
    schedule->memory = calloc(1, sizeof *schedule->memory);
    if (schedule->memory != NULL)
        pool_note_more(schedule->pool, sizeof *schedule->memory);
    return schedule->memory != NULL;
}

/* Most have sent a little, and are like any other. */
static bool is_worth_it(const struct backlog *backlog)
{
    return backlog->credit_ns < 0 || backlog->n_taught > 0 || backlog->sends_many;
}

void schedule_remember(const struct backlog *backlog)
{
    struct schedule *schedule = backlog->schedule;
    if (is_worth_it(backlog) && make(schedule))
        *place_of(schedule, backlog->subject) = (struct remembered){backlog->subject->hash, *backlog};
}

void schedule_recall(struct backlog *backlog, uint64_t now_ns)
{
    const struct schedule *schedule = backlog->schedule;
    if (schedule->memory == NULL)
        return;
    const struct remembered *place = place_of(schedule, backlog->subject);
    const struct backlog *was = &place->backlog;
    if (was->schedule == NULL || place->hash != backlog->subject->hash || now_ns - was->moved_ns > LASTS_NS)
        return;
    backlog->credit_ns = was->credit_ns;
    backlog->moved_ns = was->moved_ns; /* its silence since then counts */
    backlog->learnt_ns = was->learnt_ns;
    backlog->cost_ns = was->cost_ns;
    backlog->lessons = was->lessons;
    backlog->spread = was->spread;
    backlog->n_taught = was->n_taught;
    backlog->taught_ns = was->taught_ns;
    backlog->n_told = was->n_told;
    for (unsigned i = 0; i < BACKLOG_TOLD; i++)
        backlog->told_ns[i] = was->told_ns[i];
    backlog->asked_ns = was->asked_ns;
    backlog->asked = was->asked;
    backlog->n_asked = was->n_asked;
    backlog->visited_ns = was->visited_ns;
    backlog->sends_many = was->sends_many;
}

void schedule_forget_all(struct schedule *schedule)
{
    if (schedule->memory != NULL)
        pool_note_less(schedule->pool, sizeof *schedule->memory);
    free(schedule->memory);
    schedule->memory = NULL;
}
