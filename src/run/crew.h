/*
 * All workers together: hands out new tables to each of them, and takes the orders of their clients (LIMIT SET, RELOAD
 * ...).
 *
 * Orders are carried out on the main thread, one after the other, and answered once every worker has adopted what they
 * changed. All functions are for the main thread.
 */
#ifndef WEIR_RUN_CREW_H
#define WEIR_RUN_CREW_H

#include "front/front.h"
#include "run/config/config.h"
#include "run/listening.h"
#include "run/worker.h"

struct crew;

/*
 * Set what workers share from the configuration, which outlives it; the caller sets journal and unlimited.
 */
void crew_settings_init(struct front_settings *settings, const struct config *config);

/* After the last worker has ended. */
void crew_settings_fini(struct front_settings *settings);

/* Start settings->n_workers workers, each with its own references to what is in `tables`. */
struct crew *crew_start(struct loop *main_loop, struct front_settings *settings, const struct listening *listening,
                        const struct tables *tables);

/*
 * Set the function that carries out orders, which stay the crew's. In the turn that starts the crew, before any comes.
 */
void crew_obey(struct crew *crew, void (*carry_out)(void *arg, struct order *order), void *arg);

/* Set the function to be called each time every worker has adopted the tables that were published last. */
void crew_watch(struct crew *crew, void (*settle)(void *arg), void *arg);

/* Hand new tables to every worker; the caller keeps its references. The crew sets their generation. */
void crew_publish(struct crew *crew, const struct tables *tables);

/*
 * Call on_adopted once, on the main thread, when every worker has the tables that were published last: at once if
 * each has them already. A second call before that takes the place of the first.
 */
void crew_when_adopted(struct crew *crew, void (*on_adopted)(void *arg), void *arg);

/* A worker's front. The caller may use only what any thread may read. */
const struct front *crew_front(const struct crew *crew, unsigned worker);

/*
 * Let every worker drain (worker.h). on_stage is called on the main thread, once for each stage that all workers have
 * reached: WORKER_IS_DEAF, then WORKER_IS_EMPTY.
 */
void crew_drain(struct crew *crew, uint64_t tick_ms, bool has_successor, void (*on_stage)(void *arg, enum worker_stage),
                void *arg);

/* Whom it waits for, on all workers: as many, and the first few by name. */
void crew_holders(struct crew *crew, struct drain_holders *out);

/* Make every worker look at front_settings.memory_pressure. */
void crew_stir(struct crew *crew);

/* Has the loop of every worker turned since this last returned true? If so the check begins anew. */
bool crew_beats(struct crew *crew);

/* Stop all workers, asynchronously. crew_join waits for their threads and frees, after the main loop has ended. */
void crew_stop(struct crew *crew);
void crew_join(struct crew *crew);

#endif
