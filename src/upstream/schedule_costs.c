#include "upstream/schedule.h"

#define COST_LEAST_NS 50            /* of a request */
#define COST_MOST_NS (1 * NS_PER_S) /* the same */
#define COST_STEP_FIRST 4           /* by so much at first, ... */
#define COST_FACTOR_FIRST 8         /* ... and not more than so many times */
#define COST_STEP 32                /* what a batch tells changes what is known by one part in so many; ... */
#define COST_STEP_LESS 2            /* ... if it came to an idle Redis, and was quicker than expected */
#define COST_STEP_MIXED 64          /* ... towards what is usual, if it was answered with others' */
#define COST_MORE 2                 /* no more than so many times what was expected, since delays look like work, ... */
#define COST_AGREED 8               /* ... unless so many batches in a row say so */
#define TAUGHT_LESS 2               /* what a lesson tells is less: by one part in so many; ... */
#define TAUGHT_MORE 8               /* ... or more */
#define TAUGHT_ENOUGH 2             /* lessons after which what they said is known */
#define TAUGHT_MANY 4               /* no more of them are counted */
#define CLEAR_WAYS 4                /* an answer that took so many times as long as the way tells of work */
#define ALIKE_LEAST 1.5             /* one is less than so many times the other, ... */
#define ALIKE_MORE 8                /* ... and so many times by how much lessons differ, at least */
#define SPREAD_STEP 4               /* each lesson counts for one part in so many, ... */
#define SPREAD_MOST 8               /* ... and for no more than this */
#define USUAL_MANY 4096             /* requests, of which most say what is usual, ... */
#define USUAL_STEP 512              /* ... or so many batches, */
#define USUAL_LESSONS 64            /* after the first ones */
#define USUAL_PART 8                /* and no batch says more than one part in so many */
#define UNUSUAL 8                   /* so many times more or less, ... */
#define USUAL_PATIENCE 16           /* answers in a row to subjects that ask for nothing usual: then that is usual */
#define COST_FACTOR 64              /* no batch is believed that says so many times more or less */
#define VAGUE_PART 2 /* by more than one part in so many of what was expected it may have been less than it seems */
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
 * What most requests cost: each of them counts as much as any other, so a few that are dear change little. At first it is
 * found soon, and also after a change of what is asked: when nobody has asked for what is usual for a while.
 */
static void learn_usual(struct schedule *schedule, const struct backlog *backlog)
{
    bool is_known = schedule->lessons >= USUAL_LESSONS;
    bool is_usual =
        backlog->learnt_ns < UNUSUAL * schedule->cost_ns && backlog->learnt_ns * UNUSUAL > schedule->cost_ns;
    schedule->n_unusual = is_usual ? 0 : schedule->n_unusual + 1;
    if (schedule->n_unusual > USUAL_PATIENCE) {
        schedule->cost_ns = backlog->learnt_ns;
        schedule->n_unusual = 0;
        return;
    }
    double factor = factor_of(backlog->learnt_ns, schedule->cost_ns);
    double least = is_known ? 1.0 / USUAL_STEP : 1.0 / COST_STEP_FIRST;
    double weight = (double)backlog->answered / USUAL_MANY;
    weight = weight < least ? least : weight > 1.0 / USUAL_PART ? 1.0 / USUAL_PART : weight;
    factor = is_known && factor > COST_MORE ? COST_MORE : factor;
    uint64_t cost_ns = (uint64_t)((double)schedule->cost_ns * (1 + (factor - 1) * weight)) + 1;
    schedule->cost_ns = within(cost_ns, COST_LEAST_NS, COST_MOST_NS);
    schedule->lessons += !is_known;
}

/* What all of the last batches agree on is true, though most of them took longer. 1: there is no such thing yet. */
static double agreed(struct backlog *backlog, double factor)
{
    if (backlog->n_more == 0 || factor < backlog->least_more)
        backlog->least_more = factor;
    backlog->n_more = factor > COST_MORE ? backlog->n_more + 1 : 0;
    if (backlog->n_more < COST_AGREED)
        return 1;
    backlog->n_more = 0;
    return backlog->least_more;
}

/*
 * By what factor a subject's requests cost more than was known. On a machine whose processors are all wanted most batches
 * take too long, so what is known changes little by one of them: costs are about the median of what batches say. A batch
 * that was certainly not worked at for longer counts for more.
 */
static double learnt_factor(struct backlog *backlog, double factor, bool is_certain)
{
    if (is_certain)
        return 1 + (factor - 1) / COST_STEP_LESS;
    if (backlog->lessons < SCHEDULE_LESSONS)
        return 1 + ((factor < COST_FACTOR_FIRST ? factor : COST_FACTOR_FIRST) - 1) / COST_STEP_FIRST;
    return agreed(backlog, factor) * (1 + ((factor < COST_MORE ? factor : COST_MORE) - 1) / COST_STEP);
}

void schedule_note_spread(struct backlog *backlog, uint64_t cost_ns)
{
    uint64_t *told_ns = backlog->told_ns;
    for (int i = BACKLOG_TOLD - 1; i > 0; i--)
        told_ns[i] = told_ns[i - 1];
    told_ns[0] = within(cost_ns, COST_LEAST_NS, COST_MOST_NS);
    if (told_ns[1] != 0) {
        double times = (double)told_ns[0] / (double)told_ns[1];
        double spread = (times > 1 ? times : 1 / times) - 1;
        backlog->spread += ((spread < SPREAD_MOST ? spread : SPREAD_MOST) - backlog->spread) / SPREAD_STEP;
    }
    if (backlog->n_told < BACKLOG_TOLD)
        backlog->n_told++;
}

/* Do all of the last lessons say what is known: that it is so many times dearer than usual, or cheaper? */
static bool do_all_agree(const struct backlog *backlog, double alike)
{
    double usual_ns = (double)backlog->schedule->cost_ns;
    bool is_dear = backlog->learnt_ns > backlog->schedule->cost_ns;
    for (int i = 0; i < backlog->n_told; i++) {
        double times = (double)backlog->told_ns[i] / usual_ns;
        if (is_dear ? times < alike : times * alike > 1)
            return false;
    }
    return true;
}

/* When an answer is seen depends on much besides its cost: the more lessons differ, the larger must a difference be. */
static void believe(struct backlog *backlog)
{
    uint64_t usual_ns = backlog->schedule->cost_ns;
    double spread = backlog->schedule->spread, alike = ALIKE_LEAST + ALIKE_MORE * spread;
    double steep = (1 + spread) * (1 + spread) * (1 + spread);
    alike = steep * steep > alike ? steep * steep : alike;
    double times = (double)backlog->learnt_ns / (double)usual_ns;
    bool is_other = (times > alike || times * alike < 1) && do_all_agree(backlog, alike);
    backlog->cost_ns = is_other ? backlog->learnt_ns : usual_ns;
}

static bool is_sure(const struct schedule *schedule)
{
    return schedule->spread < SCHEDULE_SPREAD_SURE;
}

/* To be other than usual, by lessons. */
static bool is_known(const struct backlog *backlog)
{
    const struct schedule *schedule = backlog->schedule;
    return backlog->n_taught >= TAUGHT_ENOUGH && backlog->cost_ns != schedule->cost_ns && is_sure(schedule);
}

/*
 * Of what was answered together with others' (`is_mixed`) nobody can tell whose took long: then it is less far from usual,
 * unless it is known to be.
 */
static void learn(struct backlog *backlog, double factor, bool is_certain, bool is_mixed)
{
    uint64_t usual_ns = backlog->schedule->cost_ns;
    double learnt_ns = (double)backlog->learnt_ns * learnt_factor(backlog, factor, is_certain);
    if (is_mixed && !is_known(backlog) && backlog->lessons >= SCHEDULE_LESSONS)
        learnt_ns += ((double)usual_ns - learnt_ns) / COST_STEP_MIXED;
    backlog->learnt_ns = within((uint64_t)learnt_ns, COST_LEAST_NS, COST_MOST_NS);
    believe(backlog);
    if (backlog->lessons < SCHEDULE_LESSONS)
        backlog->lessons++;
}

/* A stall may look like work, but nothing like less of it: so less is believed sooner than more. */
void schedule_teach(struct backlog *backlog, uint64_t cost_ns)
{
    uint64_t told_ns = within(cost_ns, COST_LEAST_NS, COST_MOST_NS);
    uint64_t most_ns = COST_MORE * backlog->learnt_ns;
    if (told_ns > most_ns)
        backlog->learnt_ns = is_sure(backlog->schedule) ? told_ns : most_ns;
    else if (told_ns > backlog->learnt_ns)
        backlog->learnt_ns += (told_ns - backlog->learnt_ns) / TAUGHT_MORE;
    else
        backlog->learnt_ns -= (backlog->learnt_ns - told_ns) / TAUGHT_LESS;
    believe(backlog);
    if (backlog->n_taught < TAUGHT_MANY)
        backlog->n_taught++;
}

/*
 * How many times what was expected Redis has worked at a batch, as far as is certain; 0: it may be more or less. Answers that
 * nobody looked for meanwhile may have come at any time; and Redis may have been at something huge, too.
 */
static double told_by(const struct schedule *schedule, uint64_t expected)
{
    const struct answer_batch *batch = &schedule->batch;
    uint64_t worked = batch->last_ns > batch->since_ns ? batch->last_ns - batch->since_ns : 0;
    uint64_t vague = batch->unseen_ns + schedule_huge_ns(schedule) - batch->huge_ns;
    uint64_t least = worked > vague ? worked - vague : 0;
    uint64_t much = expected / VAGUE_PART;
    if (expected == 0)
        return 0;
    if (worked < expected)
        return batch->unseen_ns > much && !batch->is_clear ? 0 : factor_of(worked, expected);
    if (vague <= much)
        return factor_of(worked, expected);
    return least > expected ? factor_of(least, expected) : 0;
}

/*
 * A batch is over: what Redis has worked at it is known. What was answered together is taken to have cost what it was
 * expected to, in proportion. Where that is wrong it is found out when one of them is served alone (schedule_lesson.c). What
 * costs about as much as most others is taken to cost the same.
 */
static void end_batch(struct schedule *schedule)
{
    struct answer_batch *batch = &schedule->batch;
    uint64_t expected = 0;
    for (struct list *at = batch->answered.next; at != &batch->answered; at = at->next) {
        const struct backlog *backlog = container_of(at, struct backlog, in_answered);
        expected += backlog->answered * backlog->learnt_ns;
    }
    double factor = told_by(schedule, expected);
    bool is_mixed = batch->answered.next != batch->answered.prev;
    while (!list_is_empty(&batch->answered)) {
        struct backlog *backlog = container_of(batch->answered.next, struct backlog, in_answered);
        list_take(&backlog->in_answered);
        if (factor > 0) {
            learn(backlog, factor, batch->is_clear && factor < 1, is_mixed);
            learn_usual(schedule, backlog);
        }
        backlog->answered = 0;
    }
}

/*
 * Redis writes its answers when it has been round all that had come: those that come close together are one batch, at
 * which it has worked since the batch before, or since the first of it can have got there. That is certain where there was
 * nothing before it: then it cannot have worked longer.
 */
void schedule_add_to_batch(struct backlog *backlog, uint32_t n, uint64_t sent_ns, struct seen seen)
{
    uint64_t now_ns = seen.now_ns;
    struct schedule *schedule = backlog->schedule;
    struct answer_batch *batch = &schedule->batch;
    bool is_open = !list_is_empty(&batch->answered);
    if (is_open && (now_ns - batch->last_ns > BATCH_GAP_NS || now_ns - batch->first_ns > BATCH_MOST_NS)) {
        end_batch(schedule);
        is_open = false;
    }
    if (!is_open) {
        uint64_t base_ns = window_base_ns(&schedule->window);
        uint64_t there_ns = sent_ns + base_ns;
        batch->is_clear = there_ns > batch->last_ns && now_ns - sent_ns > CLEAR_WAYS * base_ns;
        batch->since_ns = there_ns > batch->last_ns ? there_ns : batch->last_ns;
        schedule->idle_ns += batch->since_ns - batch->last_ns;
        batch->first_ns = now_ns;
        batch->unseen_ns = 0;
        batch->huge_ns = batch->huge_now_ns;
    }
    batch->huge_now_ns = schedule_huge_ns(schedule);
    if (now_ns - seen.since_ns > batch->unseen_ns)
        batch->unseen_ns = now_ns - seen.since_ns;
    batch->last_ns = now_ns;
    if (backlog->answered == 0)
        list_push(&batch->answered, &backlog->in_answered);
    backlog->answered += n;
}

void schedule_pass_batch(struct schedule *schedule, uint64_t now_ns)
{
    if (!list_is_empty(&schedule->batch.answered))
        end_batch(schedule);
    schedule->batch.last_ns = now_ns;
}
