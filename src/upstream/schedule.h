/*
 * Who may send to a node now, of the riders of one worker: the queue at Redis is kept short, and who does not fit in
 * waits here, where it can be chosen who is next.
 *
 *     rider asks -- schedule_room: so many requests, or none --> schedule_wait
 *                -- schedule_sent
 *     answers    -- schedule_answered: what did they cost? ... schedule_turn: who is next? --> its link is woken
 *
 * While one subject is alone it sends what it likes, and nothing of this is done. As soon as another sends too:
 *
 * - all that waits for its turn shares one window of work (window.h), each worker its part by what waits on it;
 * - deficit round robin between subjects, weighted (Shreedhar, Varghese: Efficient Fair Queuing using Deficit Round
 *   Robin): a subject may send for a quantum, then the others have theirs. A thousand riders of one subject are one;
 * - who has had less than its share lately does not wait at all: it has a quantum of credit (as new flows in fq_codel).
 *
 * And where one subject is alone with several riders, none of them has more than a window of work under way.
 *
 * Nobody waits for ever: who waits does so because of something under way on this worker, whose answer ends it. What is
 * not answered for long while others are (a pause of writes, a reader who does not read), or for very long, is not
 * counted on any more: schedule_tick.
 * Time is an argument; the worker's thread only, but for what contention.h holds.
 */
#ifndef WEIR_UPSTREAM_SCHEDULE_H
#define WEIR_UPSTREAM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "upstream/backlog.h"
#include "upstream/contention.h"
#include "upstream/window.h"

#define SCHEDULE_QUANTUM_NS (100 * NS_PER_US) /* at SCHEDULE_WEIGHT, or more where the window is larger */
#define SCHEDULE_WEIGHT 100                   /* a subject's, if nobody says otherwise */
#define SCHEDULE_PATIENCE_NS (10 * NS_PER_MS) /* at first; twice as long each time that it has been too short */
#define SCHEDULE_COST_NS (2 * NS_PER_US)      /* of a request of which nothing is known */
#define SCHEDULE_HUGE_BYTES 2   /* of a huge value for each ns, or more: what Redis reads, copies, writes or frees */
#define SCHEDULE_ALL UINT32_MAX /* so many requests that they need not be counted */

/* Answers that came close together. */
struct answer_batch {
    struct list answered; /* backlogs of which some are; empty: there is none */
    uint64_t since_ns;    /* when Redis began with it, as far as can be told */
    uint64_t first_ns;    /* when the first came, ... */
    uint64_t last_ns;     /* ... and the last so far, of this or the batch before */
    uint64_t unseen_ns;   /* for so long it may have been there when it was read */
    uint64_t huge_ns;     /* schedule_huge_ns when Redis began with it, ... */
    uint64_t huge_now_ns; /* ... and when the last came */
    bool is_clear;        /* it came to an idle Redis, and took much longer than the way */
};

/* One subject is served alone, so that it can be told what its requests cost. */
struct lesson {
    struct backlog *of;  /* NULL: nobody is */
    uint64_t next_at_ns; /* when somebody is to be again */
    uint64_t sent_ns;    /* when the first of its requests was sent, ... */
    uint32_t sent;       /* ... and how many were; 0: none yet */
    uint32_t n_again;    /* it was asked again so often */
    uint64_t least_ns;   /* the least that one of them seemed to cost; 0: nothing was said yet */
    uint64_t huge_ns;    /* schedule_huge_ns when the first of its requests was sent */
    uint64_t others_ns;  /* the work of others that was sent beside them */
    uint64_t before_ns;  /* the work that was under way when it began */
    uint64_t all_sent;   /* its requests, of all times it was asked */
};

struct schedule {
    unsigned holders;              /* schedule_get; not counted where it is part of something else */
    struct contention *contention; /* the node's */
    struct pool *pool;             /* where memory is counted */
    void (*wake)(struct rider *rider);
    struct list *buckets; /* of backlogs, by subject; heap */
    size_t n_buckets;     /* a power of two, or 0 */
    size_t n_backlogs;
    struct paced **paced; /* by slot - 1; heap */
    uint32_t n_slots;     /* there */
    uint32_t free_slot;   /* none below it is free */
    uint32_t n_paced;
    uint32_t n_crowding;      /* riders that wait for their own requests */
    struct list round;        /* of backlogs of which riders wait: the next is first */
    struct list low;          /* the same, of low priority */
    uint64_t weights;         /* of those in the round */
    uint64_t work_ns;         /* under way, ... */
    uint64_t promised_ns;     /* ... and granted, but not sent yet */
    uint64_t cost_ns;         /* of most requests, whoever's */
    uint64_t clean_ns;        /* when something was sent that found nothing of this worker's before it; 0: answered */
    uint64_t heard_ns;        /* when something was answered last, or sent while nothing was under way */
    uint64_t gap_ns;          /* the longest that nothing was answered lately, though something was under way */
    uint64_t probe_ns;        /* since when nobody is served until all is answered; 0: that is not so */
    uint64_t huge_ns;         /* schedule_huge_ns then */
    uint64_t watched_ns;      /* since riders wait, until when the window knows of it; 0: nobody waits */
    uint64_t watched_huge_ns; /* schedule_huge_ns then */
    uint64_t swept_ns;        /* when riders were last looked at that have sent nothing for a while */
    uint64_t freed_ns;        /* when riders that wait for their own requests were woken last */
    uint64_t theirs_ns;       /* what Redis had worked for other workers, at watched_ns */
    uint64_t idle_ns;   /* since then Redis had nothing of this worker's to do for so long, by when answers came */
    uint64_t said_ns;   /* of contention.worked_ns: for this worker, ... */
    uint64_t unsaid_ns; /* ... and not told to the others yet */
    bool is_refilling;  /* there was nothing under way: a part of the window now, the rest right after it */
    bool is_dry;        /* there is (nearly) nothing under way */
    const struct backlog *out; /* the last that left the round in this turn; only to be compared */
    uint32_t n_out;            /* backlogs that left the round in this turn, and of which riders were woken */
    uint32_t n_unusual;        /* subjects in a row that were answered something else */
    uint32_t lessons;          /* batches that have told of costs, up to a few */
    uint32_t round_no;         /* the number of this one, which wraps */
    double spread;             /* by what part lessons differ from one another, of who is surest */
    struct answer_batch batch;
    struct lesson lesson;
    struct send_window window;
};

void schedule_init(struct schedule *schedule, struct contention *contention, struct pool *pool,
                   void (*wake)(struct rider *rider));

/* As schedule_init, with one reference. Out of memory ends the process. */
struct schedule *schedule_new(struct contention *contention, struct pool *pool, void (*wake)(struct rider *rider));
struct schedule *schedule_get(struct schedule *schedule);
void schedule_put(struct schedule *schedule); /* the last calls schedule_fini */

/* No rider may be paced any more. */
void schedule_fini(struct schedule *schedule);

/*
 * So many bytes of a huge request went, or of a huge reply came; again when such a request is answered or such a reply begins,
 * since Redis has freed or copied all of it then. It works at those for long, and that is counted for nobody: by so much less
 * may others' requests have cost than it seems.
 */
static inline void schedule_note_huge(struct schedule *schedule, uint64_t bytes)
{
    atomic_fetch_add_explicit(&schedule->contention->huge_ns, bytes / SCHEDULE_HUGE_BYTES, memory_order_relaxed);
}

static inline uint64_t schedule_huge_ns(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->contention->huge_ns, memory_order_relaxed);
}

/* ---- which riders are counted ---- */

/* From now on the rider is counted for this subject, which outlives that. NULL: out of memory, and it is not. */
struct paced *schedule_enter(struct schedule *schedule, struct rider *rider, struct subject *subject, uint64_t now_ns);

/* The rider has gone, or is another subject's: what it has under way counts for nobody. */
void schedule_leave(struct schedule *schedule, struct paced *paced);

static inline struct paced *schedule_at(const struct schedule *schedule, uint32_t slot)
{
    return schedule->paced[slot - 1];
}

/* What the policy of its subject says. */
static inline void schedule_set(struct paced *paced, uint32_t weight, bool is_low)
{
    paced->backlog->weight = weight;
    paced->backlog->is_low = is_low;
}

/* ---- sending ---- */

/* How many requests may it send now, while several subjects do? 0: none; then schedule_wait. */
uint32_t schedule_room(struct paced *paced, uint64_t now_ns);

/* The same while its subject is alone, and has several riders. 0: schedule_wait_for_own. */
uint32_t schedule_room_alone(const struct paced *paced);

/* It has sent so many. */
void schedule_sent(struct paced *paced, uint32_t n, uint64_t now_ns);

/* It has sent what it can of what it was granted: the rest is for others. */
void schedule_settle(struct paced *paced);

/* Its link is woken when it is its turn; or when fewer of its own requests are under way. */
void schedule_wait(struct paced *paced, uint64_t now_ns);
void schedule_wait_for_own(struct paced *paced, uint64_t now_ns);
void schedule_stop_waiting(struct paced *paced);

/* ---- answers ---- */

/* When an answer was read, and since when it may have been there: nobody had looked in between. */
struct seen {
    uint64_t now_ns, since_ns;
};

/* So many of its requests, or other calls of the rider's, that were sent at sent_ns (0: that is not known). */
void schedule_answered(struct paced *paced, uint32_t n, uint64_t sent_ns, struct seen seen);

/* Once in each turn of the loop, before woken links are called. `is_open`: nobody is to wait. */
void schedule_turn(struct schedule *schedule, bool is_open, uint64_t now_ns);

/* May somebody who waits go, whom no answer will wake? Then another turn is to follow at once. */
bool schedule_is_unsettled(struct schedule *schedule, uint64_t now_ns);

static inline bool schedule_is_waited_for(const struct schedule *schedule)
{
    return !list_is_empty(&schedule->round) || !list_is_empty(&schedule->low) || schedule->n_crowding > 0;
}

/*
 * Every 10 ms or so while somebody waits: what has not been answered for long is not counted on, and who waits for requests
 * of its own looks whether it still must.
 */
void schedule_tick(struct schedule *schedule, uint64_t now_ns);

/* ---- between its parts ---- */

#define SCHEDULE_SPREAD_SURE 0.5    /* where lessons differ by more nothing is known for sure, ... */
#define SCHEDULE_SPREAD_UNKNOWN 100 /* ... and by so much that no difference between subjects is believed */
#define SCHEDULE_LESSONS 16         /* batches before the cost of a subject's requests is taken to be known */

/* So many requests are answered: what do they cost? Or that is not to be found out from them: schedule_costs.c. */
void schedule_add_to_batch(struct backlog *backlog, uint32_t n, uint64_t sent_ns, struct seen seen);
void schedule_pass_batch(struct schedule *schedule, uint64_t now_ns);

/* What somebody who was served alone seems to have cost for each request; and what is certain of that: schedule_costs.c. */
void schedule_note_spread(struct backlog *backlog, uint64_t cost_ns);
void schedule_teach(struct backlog *backlog, uint64_t cost_ns);

/*
 * Lessons: schedule_lesson.c. Is it time for one? Then whoever has had its share waits, though it were alone; and one begins
 * as soon as somebody waits. Nobody is served then until all has been answered, and after that lesson.of, if it can go on,
 * with so many requests. It ends when they have been answered, or when it is ended.
 */
static inline bool schedule_lesson_is_due(const struct schedule *schedule, uint64_t now_ns)
{
    return now_ns >= schedule->lesson.next_at_ns && schedule->n_backlogs > 1 && schedule->probe_ns == 0;
}

bool schedule_lesson_begin(struct schedule *schedule, uint64_t now_ns);
bool schedule_lesson_can_go_on(const struct schedule *schedule);
uint32_t schedule_lesson_size(const struct backlog *backlog);
void schedule_lesson_sent(struct backlog *backlog, uint32_t n, uint64_t now_ns);
void schedule_lesson_answered(struct backlog *backlog, struct seen seen);
void schedule_lesson_end(struct schedule *schedule, uint64_t now_ns);

/* So many requests of this subject will not be answered. */
void schedule_lesson_forget(struct backlog *backlog, uint32_t n);

/*
 * Probes: schedule_probe.c. Is it time for one? Then nobody is served until all has been answered, and after that one
 * request. It was answered, or another that found nothing before it, after so long, of which so much is taken for work. And
 * in each turn: neither a probe nor a lesson goes on for ever; how long that may be depends on when something was answered.
 */
void schedule_probe_begin(struct schedule *schedule, uint64_t now_ns);
void schedule_probe_set(struct schedule *schedule, uint64_t now_ns); /* the same, for a lesson */
void schedule_probe_answered(const struct backlog *backlog, uint32_t n, uint64_t took_ns, uint64_t work_ns,
                             uint64_t now_ns);
void schedule_probe_look(struct schedule *schedule, uint64_t now_ns);
void schedule_note_heard(struct schedule *schedule, uint64_t now_ns);

/* Riders wait from now on; something was sent; so much was answered, or nobody waits any more: schedule_dry.c. */
void schedule_watch_begin(struct schedule *schedule, uint64_t now_ns);
void schedule_watch_sent(struct schedule *schedule);
void schedule_watch(struct schedule *schedule, uint64_t worked_ns, uint64_t now_ns);

static inline bool schedule_are_others_waiting(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->contention->weights, memory_order_relaxed) > 0;
}

/* This worker's part of the window, `more` weight joining what waits here. */
uint64_t schedule_window_ns(const struct schedule *schedule, uint32_t more);

/* Of schedule.c, for schedule_riders.c: */
void schedule_forget(struct paced *paced); /* what it has under way is not counted any more */
void schedule_lose_patience(struct backlog *backlog, uint64_t now_ns);
void schedule_lose_patience_with(struct paced *paced);

/* Give up riders that have sent nothing for a second or two; what their subjects' requests cost is forgotten with the last. */
void schedule_sweep(struct schedule *schedule, uint64_t now_ns);

#endif
