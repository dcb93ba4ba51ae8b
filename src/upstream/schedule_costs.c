#include "upstream/schedule.h"

#define COST_LEAST_NS 50            /* of a request */
#define COST_MOST_NS (1 * NS_PER_S) /* the same */
#define COST_STEP_FIRST 4           /* by so much at first */
#define COST_STEP_UP 16  /* what a turn tells changes what is known by one part in so many: slowly upwards, ... */
#define COST_STEP_DOWN 8 /* ... since whatever holds Redis or weir up looks like work */
#define ALIKE 8          /* one is less than so many times the other */
#define USUAL_MANY 4096  /* requests, of which most say what is usual, ... */
#define USUAL_STEP 512   /* ... or so many batches, */
#define USUAL_LESSONS 64 /* after the first ones */
#define COST_FACTOR 8    /* and no turn is believed that says so many times more or less */
#define BATCH_GAP_NS (30 * NS_PER_US)
#define BATCH_MOST_NS (500 * NS_PER_US)

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static double factor_of(uint64_t worked, uint64_t expected)
{
    double factor = (double)worked / (double)expected;
    return factor > COST_FACTOR ? COST_FACTOR : factor < 1.0 / COST_FACTOR ? 1.0 / COST_FACTOR : factor;
}

/*
 * What most requests cost: each of them counts as much as any other, so a few that are dear change little. At first, and
 * after a change of what is asked, it is found soon all the same.
 */
static void learn_usual(struct schedule *schedule, double factor, uint64_t n)
{
    double least = schedule->lessons < USUAL_LESSONS ? 1.0 / COST_STEP_FIRST : 1.0 / USUAL_STEP;
    double weight = (double)n / USUAL_MANY;
    weight = weight < least ? least : weight > 1.0 / COST_STEP_DOWN ? 1.0 / COST_STEP_DOWN : weight;
    uint64_t cost_ns = (uint64_t)((double)schedule->cost_ns * (1 + (factor - 1) * weight)) + 1;
    schedule->cost_ns = within(cost_ns, COST_LEAST_NS, COST_MOST_NS);
    schedule->lessons += schedule->lessons < USUAL_LESSONS;
}

/* When an answer is seen depends on much besides its cost, so only large differences are believed. */
static void learn(struct backlog *backlog, double factor)
{
    uint64_t usual_ns = backlog->schedule->cost_ns;
    int step = backlog->lessons < SCHEDULE_LESSONS ? COST_STEP_FIRST : factor > 1 ? COST_STEP_UP : COST_STEP_DOWN;
    double learnt_ns = (double)backlog->learnt_ns * (1 + (factor - 1) / step);
    backlog->learnt_ns = within((uint64_t)learnt_ns, COST_LEAST_NS, COST_MOST_NS);
    bool is_usual = backlog->learnt_ns < usual_ns * ALIKE && backlog->learnt_ns * ALIKE > usual_ns;
    backlog->cost_ns = is_usual ? usual_ns : backlog->learnt_ns;
    if (backlog->lessons < SCHEDULE_LESSONS)
        backlog->lessons++;
}

/*
 * A batch is over: what Redis has worked at it is known. What was answered together is taken to have cost what it was
 * expected to, in proportion. Where that is wrong it is found out when one of them is answered alone. What costs about
 * as much as most others is taken to cost the same.
 */
static void end_batch(struct schedule *schedule)
{
    struct answer_batch *batch = &schedule->batch;
    uint64_t expected = 0;
    uint64_t n = 0;
    for (struct list *at = batch->answered.next; at != &batch->answered; at = at->next) {
        const struct backlog *backlog = container_of(at, struct backlog, in_answered);
        expected += backlog->answered * backlog->learnt_ns;
        n += backlog->answered;
    }
    uint64_t worked = batch->last_ns > batch->since_ns ? batch->last_ns - batch->since_ns : 0;
    double factor = n > 0 ? factor_of(worked, expected) : 1;
    while (!list_is_empty(&batch->answered)) {
        struct backlog *backlog = container_of(batch->answered.next, struct backlog, in_answered);
        list_take(&backlog->in_answered);
        backlog->answered = 0;
        learn(backlog, factor);
    }
    if (n > 0)
        learn_usual(schedule, factor_of(worked, n * schedule->cost_ns), n);
}

/*
 * Redis writes its answers when it has been round all that had come: those that come close together are one batch, at
 * which it has worked since the batch before, or since the first of it can have got there.
 */
void schedule_add_to_batch(struct backlog *backlog, uint32_t n, uint64_t sent_ns, uint64_t now_ns)
{
    struct schedule *schedule = backlog->schedule;
    struct answer_batch *batch = &schedule->batch;
    bool is_open = !list_is_empty(&batch->answered);
    if (is_open && (now_ns - batch->last_ns > BATCH_GAP_NS || now_ns - batch->first_ns > BATCH_MOST_NS)) {
        end_batch(schedule);
        is_open = false;
    }
    if (!is_open) {
        uint64_t there_ns = sent_ns + window_base_ns(&schedule->window);
        batch->since_ns = there_ns > batch->last_ns ? there_ns : batch->last_ns;
        batch->first_ns = now_ns;
    }
    batch->last_ns = now_ns;
    if (backlog->answered == 0)
        list_push(&batch->answered, &backlog->in_answered);
    backlog->answered += n;
}
