/*
 * All workers together: what is handed out to every one of them, and the orders that their clients give the process.
 *
 * Orders are carried out on the main thread, in the order they came, and go back once every worker has adopted what
 * they changed; those that come meanwhile wait. Everything but what workers report is the main thread's.
 */
#ifndef WEIR_RUN_CREW_H
#define WEIR_RUN_CREW_H

#include "front/front.h"
#include "run/config.h"
#include "run/listening.h"
#include "run/worker.h"

struct crew;

/*
 * What the configuration says of what workers share; journal and unlimited are the caller's to set. `config`
 * outlives it.
 */
void crew_settings_init(struct front_settings *settings, const struct config *config);

/* After the last worker has ended. */
void crew_settings_fini(struct front_settings *settings);

/* Start settings->n_workers workers, each with references of its own to the parts of `tables`. */
struct crew *crew_start(struct loop *main_loop, struct front_settings *settings, const struct listening *listening,
                        const struct tables *tables);

/* Set what carries out orders; the order remains the crew's. In the turn that starts the crew, before any can come. */
void crew_obey(struct crew *crew, void (*carry_out)(void *arg, struct order *order), void *arg);

/* Hand these to every worker; the caller's references remain the caller's. The generation is the crew's to set. */
void crew_publish(struct crew *crew, const struct tables *tables);

/* What a worker's clients share: only what any thread may read is for the caller. */
const struct front *crew_front(const struct crew *crew, unsigned worker);

/*
 * Tell every worker to drain (worker.h). on_stage is called on the main thread, once for each stage that all workers have
 * reached: nobody is accepted any more; all clients have gone.
 */
void crew_drain(struct crew *crew, uint64_t tick_ms, bool accept_rest, void (*on_stage)(void *arg, enum worker_stage),
                void *arg);

/* Have every worker look at what front_settings.memory_pressure says. */
void crew_stir(struct crew *crew);

/* Has every worker's loop turned since the last time that this was true? Asks them anew if so. */
bool crew_beats(struct crew *crew);

/* Asynchronous; crew_join waits for the threads and frees, after the main loop has ended. */
void crew_stop(struct crew *crew);
void crew_join(struct crew *crew);

#endif
