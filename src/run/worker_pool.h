/*
 * All workers together: hands new tables to each worker, and takes the admin commands of their
 * clients (LIMIT SET, LIMIT RELOAD ...).
 *
 * Admin commands are carried out on the main thread, one after the other. An admin command is
 * answered once every worker has adopted its change. All functions are for the main thread.
 */
#ifndef WEIR_RUN_WORKER_POOL_H
#define WEIR_RUN_WORKER_POOL_H

#include "front/front.h"
#include "run/config/config.h"
#include "run/listening.h"
#include "run/worker.h"

struct worker_pool;

/*
 * Makes the settings that all workers share from `config`, which must outlive the settings. The
 * caller sets journal and unlimited.
 */
void worker_pool_settings_init(struct front_settings *settings, const struct config *config);

/* Frees what the settings own, after the last worker has ended. */
void worker_pool_settings_fini(struct front_settings *settings);

/*
 * Starts settings->n_workers workers. Each worker takes its own references to the parts of
 * `tables`.
 */
struct worker_pool *worker_pool_start(struct loop *main_loop, struct front_settings *settings,
                                      const struct listening *listening,
                                      const struct tables *tables);

/*
 * Sets the function that carries out admin commands. The workers keep ownership of each command. To
 * be called in the iteration that starts the workers, before any command comes.
 */
void worker_pool_obey(struct worker_pool *pool,
                      void (*carry_out)(void *arg, struct admin_command *admin_command), void *arg);

/*
 * Sets the function that is called each time every worker has adopted the newest published tables.
 */
void worker_pool_watch(struct worker_pool *pool, void (*settle)(void *arg), void *arg);

/*
 * Hands new tables to every worker. The caller keeps its references. Sets the generation of the
 * tables.
 */
void worker_pool_publish(struct worker_pool *pool, const struct tables *tables);

/*
 * Calls on_adopted once, on the main thread, when every worker has the newest published tables; at
 * once if every worker has the tables already. A second call before on_adopted runs replaces the
 * first call.
 */
void worker_pool_when_adopted(struct worker_pool *pool, void (*on_adopted)(void *arg), void *arg);

/* Returns a worker's front. The caller may only read fields that are open to any thread. */
const struct front *worker_pool_front(const struct worker_pool *pool, unsigned worker);

/*
 * Makes every worker drain (worker.h). on_stage is called on the main thread, once for each stage
 * that all workers have reached: WORKER_IS_DEAF, then WORKER_IS_EMPTY.
 */
void worker_pool_drain(struct worker_pool *pool, uint64_t tick_ms, bool has_successor,
                       void (*on_stage)(void *arg, enum worker_stage), void *arg);

/*
 * Sets the number of clients that the drain waits for, on all workers, and the names of the first
 * few.
 */
void worker_pool_holders(struct worker_pool *pool, struct drain_holders *out);

/* Makes every worker read front_settings.memory_pressure. */
void worker_pool_stir(struct worker_pool *pool);

/*
 * True if the loop of every worker has iterated since this function last returned true. After true
 * the check begins anew.
 */
bool worker_pool_beats(struct worker_pool *pool);

/* Stops all workers asynchronously. */
void worker_pool_stop(struct worker_pool *pool);

/* Waits for the threads of all workers, and frees. To be called after the main loop has ended. */
void worker_pool_join(struct worker_pool *pool);

#endif
