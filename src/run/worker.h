/*
 * A worker: a thread with its own loop, listeners, clients and lanes.
 *
 * Started, told and stopped by the main thread; what it is told waits in its inbox until its loop turns.
 */
#ifndef WEIR_RUN_WORKER_H
#define WEIR_RUN_WORKER_H

#include <stddef.h>

#include "front/front.h"
#include "run/listening.h"

struct worker;

/* Whom a worker reports to; called on the worker's thread. */
struct worker_ops {
    void (*on_news)(void *arg);                       /* worker_generation or worker_stage has changed */
    void (*on_order)(void *arg, struct order *order); /* takes it over; order->worker is set */
    void *arg;
};

/*
 * Start a thread that accepts at `openings` and is number `index` of the workers. Takes over one reference each in
 * `tables`. `ops` outlives the worker. Ends the process when the system refuses a thread.
 */
struct worker *worker_start(struct front_settings *settings, unsigned index, const struct listening *listening,
                            const struct tables *tables, const struct worker_ops *ops);

/* For front_settings.give. */
void worker_give(void *worker, struct order *order);

/* For front_settings.on_empty. */
void worker_emptied(void *worker);

/* Hand over new tables, one reference each. Of several only the newest is adopted. */
void worker_adopt(struct worker *worker, const struct tables *tables);

/* The generation that binds the worker's clients. Any thread. */
unsigned worker_generation(const struct worker *worker);

/* How far a worker has come with its end. */
enum worker_stage {
    WORKER_SERVES,
    WORKER_IS_DEAF,  /* accepts nobody any more */
    WORKER_IS_EMPTY, /* nor has it clients */
};

/*
 * Accept nobody any more, those excepted who have connected already if `accept_rest`, and let clients go, see
 * front/drain.h. on_news follows for each stage.
 */
void worker_drain(struct worker *worker, uint64_t tick_ms, bool accept_rest);
enum worker_stage worker_stage(const struct worker *worker);

/* Have it look at what front_settings.memory_pressure says. */
void worker_stir(struct worker *worker);

/* Ask its loop for a sign of life: worker_beats is one more once the loop has turned. */
void worker_poke(struct worker *worker);
unsigned worker_beats(const struct worker *worker);

/* Only what any thread may read is for the caller. */
const struct front *worker_front(const struct worker *worker);

/* Give back an order that came from this worker. */
void worker_return(struct worker *worker, struct order *order);

/* Close everything; worker_join waits for the thread's end and frees. Nothing may be handed over in between. */
void worker_stop(struct worker *worker);
void worker_join(struct worker *worker);

#endif
