/*
 * A worker: a thread with its own loop, listeners, clients and lanes.
 *
 * The main thread puts work into the worker's inbox. The worker reads the inbox in the next
 * iteration of its loop.
 */
#ifndef WEIR_RUN_WORKER_H
#define WEIR_RUN_WORKER_H

#include <stddef.h>

#include "front/front.h"
#include "run/listening.h"

struct worker;

/* How a worker reports; called on the worker's thread. */
struct worker_ops {
    void (*on_news)(void *arg); /* worker_generation or worker_stage has changed */
    /* takes over the admin command, which is new or visits every worker */
    void (*on_admin_command)(void *arg, struct admin_command *admin_command);
    void *arg;
};

/*
 * Starts worker number `index`, which accepts on its sockets of `listening`. Takes over the
 * references in `tables`. `ops` must outlive the worker. Ends the process when no thread can be
 * started.
 */
struct worker *worker_start(struct front_settings *settings, unsigned index,
                            const struct listening *listening, const struct tables *tables,
                            const struct worker_ops *ops);

/* For front_settings.give: takes over an admin command of a client of this worker. */
void worker_give(void *worker, struct admin_command *admin_command);

/* For front_settings.on_empty: this worker has no client left. */
void worker_emptied(void *worker);

/*
 * Hands over new tables, with their references. If several are waiting only the newest are adopted.
 */
void worker_adopt(struct worker *worker, const struct tables *tables);

/* Returns the generation of the tables that the worker uses. Any thread. */
unsigned worker_generation(const struct worker *worker);

/* How far a worker has drained. */
enum worker_stage {
    WORKER_SERVES,
    WORKER_IS_DEAF,  /* the worker accepts no more clients */
    WORKER_IS_EMPTY, /* the worker accepts no more clients, and has none left */
};

/*
 * Stops accepting, and closes clients between two commands: see front/client/drain.h. Without a
 * successor all connections that wait now are accepted first. With a successor these connections
 * are left to the successor. on_news follows for each stage.
 */
void worker_drain(struct worker *worker, uint64_t tick_ms, bool has_successor);

/* Sets *out to the clients that the drain waits for. */
void worker_holders(struct worker *worker, struct drain_holders *out);

/* Returns how far the worker has drained. Any thread. */
enum worker_stage worker_stage(const struct worker *worker);

/*
 * Makes the worker read front_settings.memory_pressure, and the login results decided for
 * the worker (front_settings.attempts).
 */
void worker_stir(void *worker);

/* Wakes the worker's loop. */
void worker_poke(struct worker *worker);

/* Returns a number that grows by one once the loop has iterated after a worker_poke. */
unsigned worker_beats(const struct worker *worker);

/* Returns the worker's front. The caller may only read fields that are open to any thread. */
const struct front *worker_front(const struct worker *worker);

/* Gives back an admin command that came from this worker. */
void worker_return(struct worker *worker, struct admin_command *admin_command);

/* Closes everything asynchronously. No more work may be handed to the worker after this call. */
void worker_stop(struct worker *worker);

/* Waits for the thread of a stopped worker, and frees. */
void worker_join(struct worker *worker);

#endif
