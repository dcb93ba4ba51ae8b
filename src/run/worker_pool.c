#include "run/worker_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

struct worker_pool {
    struct worker **workers;
    unsigned n_workers;
    unsigned generation; /* number of the newest published tables */
    /*
     * published tables, newest last; older ones may still be in use by a worker. Freed on the main
     * thread
     */
    struct tables *handed;
    size_t n_handed;
    unsigned settled;          /* the generation for which settle was called last */
    void (*settle)(void *arg); /* NULL: not set yet */
    void *settle_arg;
    struct worker_ops ops;
    void (*carry_out)(void *arg, struct admin_command *admin_command);
    void *arg;
    uv_async_t stirred; /* sent by workers that have something to report */
    /* admin commands carried out, waiting until every worker has adopted the tables */
    struct list carried;
    void (*on_stage)(void *arg, enum worker_stage stage); /* NULL: not draining */
    void *stage_arg;
    enum worker_stage told_stage;  /* the last stage that on_stage was called for */
    void (*on_adopted)(void *arg); /* see worker_pool_when_adopted; NULL: none is waiting */
    void *adopted_arg;
    unsigned pokes; /* how often each worker was poked */

    pthread_mutex_t lock; /* protects given and is_stopping */
    struct list given;    /* new admin commands */
    bool is_stopping;     /* no more admin commands are taken */
};

/* ---- settings ---- */

void worker_pool_settings_init(struct front_settings *settings, const struct config *config)
{
    settings->lanes_private = config->lanes_private;
    settings->subjects = subjects_new(config->max_subjects);
    settings->key_subjects = subjects_new(config->max_subjects);
    settings->addresses = subjects_new(config->max_subjects);
    settings->slowlog = slowlog_new();
    settings->n_workers = config->workers;
    settings->upstream_user =
        config->upstream_user != NULL ? slice_str(config->upstream_user) : SLICE("default");
    settings->limit_counters = mem_zalloc(config->workers, sizeof(struct limit_counters *));
    settings->tops = mem_zalloc(config->workers, sizeof(struct top *));
    settings->stopping = mem_zalloc(REGISTRY_LIMITS_MAX, sizeof *settings->stopping);
    settings->all_offenders = mem_zalloc(config->workers, sizeof(struct offenders *));
    quota_settings_init(&settings->quota);
    settings->attempts = attempts_new(config->workers, worker_stir);
    if (getrandom(&settings->share_key, sizeof settings->share_key, 0) !=
        (ssize_t)sizeof settings->share_key)
        abort();
    settings->reconnects = reconnects_new(settings->share_key);
    for (unsigned w = 0; w < config->workers; w++) {
        settings->limit_counters[w] = limit_counters_new();
        settings->tops[w] = top_new();
        settings->all_offenders[w] = offenders_new();
    }
}

void worker_pool_settings_fini(struct front_settings *settings)
{
    for (unsigned w = 0; w < settings->n_workers; w++) {
        free(settings->limit_counters[w]);
        top_free(settings->tops[w]);
        offenders_free(settings->all_offenders[w]);
    }
    free(settings->limit_counters);
    free(settings->tops);
    free(settings->all_offenders);
    free(settings->stopping);
    subjects_free(settings->subjects);
    subjects_free(settings->key_subjects);
    subjects_free(settings->addresses);
    slowlog_free(settings->slowlog);
    attempts_free(settings->attempts);
    reconnects_free(settings->reconnects);
    quota_settings_fini(&settings->quota);
}

/* ---- on a worker's thread ---- */

static void stir(struct worker_pool *pool)
{
    if (!pool->is_stopping)
        uv_async_send(&pool->stirred);
}

static void worker_pool_on_news(void *arg)
{
    struct worker_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    stir(pool);
    pthread_mutex_unlock(&pool->lock);
}

static void worker_pool_on_admin_command(void *arg, struct admin_command *admin_command)
{
    struct worker_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    list_push(&pool->given, &admin_command->in_queue);
    stir(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- on the main thread ---- */

static struct admin_command *take_first(struct list *admin_commands)
{
    struct admin_command *admin_command =
        container_of(admin_commands->next, struct admin_command, in_queue);
    list_take(&admin_command->in_queue);
    return admin_command;
}

static bool is_adopted(const struct worker_pool *pool)
{
    for (unsigned w = 0; w < pool->n_workers; w++)
        if (worker_generation(pool->workers[w]) != pool->generation)
            return false;
    return true;
}

/* Passes the admin command to the next worker that takes part in it. False: none is left. */
static bool send_round(struct worker_pool *pool, struct admin_command *admin_command)
{
    admin_command->is_on_its_round =
        admin_command_goes_round(admin_command) && admin_command->visited < pool->n_workers;
    if (admin_command->is_on_its_round)
        worker_return(pool->workers[admin_command->visited++], admin_command);
    return admin_command->is_on_its_round;
}

static void carry_out(struct worker_pool *pool)
{
    struct list given;
    pthread_mutex_lock(&pool->lock);
    list_take_all(&given, &pool->given);
    pthread_mutex_unlock(&pool->lock);
    while (!list_is_empty(&given)) {
        struct admin_command *admin_command = take_first(&given);
        if (send_round(pool, admin_command))
            continue;
        pool->carry_out(pool->arg, admin_command);
        list_push(&pool->carried, &admin_command->in_queue);
    }
}

/*
 * Releases all but the newest `keep` tables. The last reference is dropped on this thread: freeing
 * many policies would delay a worker's clients.
 */
static void let_tables_go(struct worker_pool *pool, size_t keep)
{
    size_t n = pool->n_handed > keep ? pool->n_handed - keep : 0;
    for (size_t i = 0; i < n; i++)
        tables_put(&pool->handed[i]);
    if (n > 0)
        memmove(pool->handed, pool->handed + n, (pool->n_handed - n) * sizeof *pool->handed);
    pool->n_handed -= n;
}

static void note_handed(struct worker_pool *pool, const struct tables *tables)
{
    pool->handed = mem_realloc(pool->handed, pool->n_handed + 1, sizeof *pool->handed);
    pool->handed[pool->n_handed++] = tables_get(tables);
}

/*
 * Calls settle once per generation, before any client gets the answer to an admin command. The
 * change is complete when the client reads the answer.
 */
static void settle(struct worker_pool *pool)
{
    if (pool->settle == NULL || pool->settled == pool->generation || !is_adopted(pool))
        return;
    pool->settled = pool->generation;
    pool->settle(pool->settle_arg);
}

static void return_carried(struct worker_pool *pool)
{
    if (is_adopted(pool))
        let_tables_go(pool, 1);
    settle(pool);
    while (is_adopted(pool) && !list_is_empty(&pool->carried)) {
        struct admin_command *admin_command = take_first(&pool->carried);
        worker_return(admin_command->worker, admin_command);
    }
}

static void worker_pool_tell_adopted(struct worker_pool *pool)
{
    void (*on_adopted)(void *arg) = pool->on_adopted;
    settle(pool);
    if (on_adopted == NULL || !is_adopted(pool))
        return;
    pool->on_adopted = NULL;
    on_adopted(pool->adopted_arg);
}

static enum worker_stage stage_of_all(const struct worker_pool *pool)
{
    enum worker_stage least = WORKER_IS_EMPTY;
    for (unsigned w = 0; w < pool->n_workers; w++) {
        enum worker_stage stage = worker_stage(pool->workers[w]);
        least = stage < least ? stage : least;
    }
    return least;
}

static void tell_stages(struct worker_pool *pool)
{
    while (pool->on_stage != NULL && pool->told_stage < stage_of_all(pool))
        pool->on_stage(pool->stage_arg, ++pool->told_stage);
}

static void on_stirred(uv_async_t *async)
{
    struct worker_pool *pool = async->data;
    return_carried(pool);
    if (list_is_empty(&pool->carried)) {
        carry_out(pool);
        return_carried(pool);
    } /* else new commands wait until every worker has adopted the tables */
    worker_pool_tell_adopted(pool);
    tell_stages(pool);
}

static struct tables tables_of_worker_pool(const struct worker_pool *pool,
                                           const struct tables *tables)
{
    struct tables own = tables_get(tables);
    own.generation = pool->generation;
    return own;
}

void worker_pool_publish(struct worker_pool *pool, const struct tables *tables)
{
    pool->generation++;
    note_handed(pool, tables);
    for (unsigned w = 0; w < pool->n_workers; w++) {
        struct tables own = tables_of_worker_pool(pool, tables);
        worker_adopt(pool->workers[w], &own);
    }
}

void worker_pool_when_adopted(struct worker_pool *pool, void (*on_adopted)(void *arg), void *arg)
{
    pool->on_adopted = on_adopted;
    pool->adopted_arg = arg;
    worker_pool_tell_adopted(pool);
}

void worker_pool_watch(struct worker_pool *pool, void (*settle_fn)(void *arg), void *arg)
{
    pool->settle = settle_fn;
    pool->settle_arg = arg;
}

void worker_pool_obey(struct worker_pool *pool,
                      void (*carry_out_fn)(void *arg, struct admin_command *admin_command),
                      void *arg)
{
    pool->carry_out = carry_out_fn;
    pool->arg = arg;
}

struct worker_pool *worker_pool_start(struct loop *main_loop, struct front_settings *settings,
                                      const struct listening *listening,
                                      const struct tables *tables)
{
    struct worker_pool *pool = mem_zalloc(1, sizeof *pool);
    pool->ops = (struct worker_ops){worker_pool_on_news, worker_pool_on_admin_command, pool};
    pool->n_workers = settings->n_workers;
    pool->workers = mem_zalloc(pool->n_workers, sizeof(struct worker *));
    list_init(&pool->carried);
    list_init(&pool->given);
    pthread_mutex_init(&pool->lock, NULL);
    uv_async_init(&main_loop->uv, &pool->stirred, on_stirred);
    pool->stirred.data = pool;
    settings->give = worker_give;
    settings->on_empty = worker_emptied;
    note_handed(pool, tables);
    for (unsigned w = 0; w < pool->n_workers; w++) {
        struct tables own = tables_of_worker_pool(pool, tables);
        pool->workers[w] = worker_start(settings, w, listening, &own, &pool->ops);
    }
    return pool;
}

const struct front *worker_pool_front(const struct worker_pool *pool, unsigned worker)
{
    return worker_front(pool->workers[worker]);
}

void worker_pool_drain(struct worker_pool *pool, uint64_t tick_ms, bool has_successor,
                       void (*on_stage)(void *arg, enum worker_stage), void *arg)
{
    pool->on_stage = on_stage;
    pool->stage_arg = arg;
    for (unsigned w = 0; w < pool->n_workers; w++)
        worker_drain(pool->workers[w], tick_ms, has_successor);
}

void worker_pool_holders(struct worker_pool *pool, struct drain_holders *out)
{
    struct drain_holders some;
    out->n = out->n_named = 0;
    for (unsigned w = 0; w < pool->n_workers; w++) {
        worker_holders(pool->workers[w], &some);
        out->n += some.n;
        for (unsigned i = 0; i < some.n_named && out->n_named < DRAIN_NAMED; i++)
            memcpy(out->named[out->n_named++], some.named[i], DRAIN_LINE);
    }
}

bool worker_pool_beats(struct worker_pool *pool)
{
    for (unsigned w = 0; w < pool->n_workers; w++)
        if (worker_beats(pool->workers[w]) != pool->pokes)
            return false;
    pool->pokes++;
    for (unsigned w = 0; w < pool->n_workers; w++)
        worker_poke(pool->workers[w]);
    return true;
}

void worker_pool_stir(struct worker_pool *pool)
{
    for (unsigned w = 0; w < pool->n_workers; w++)
        worker_stir(pool->workers[w]);
}

void worker_pool_stop(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_mutex_unlock(&pool->lock);
    uv_close((uv_handle_t *)&pool->stirred, NULL);
    for (unsigned w = 0; w < pool->n_workers; w++)
        worker_stop(pool->workers[w]);
}

void worker_pool_join(struct worker_pool *pool)
{
    for (unsigned w = 0; w < pool->n_workers; w++)
        worker_join(pool->workers[w]);
    while (!list_is_empty(&pool->given))
        admin_command_free(take_first(&pool->given));
    while (!list_is_empty(&pool->carried))
        admin_command_free(take_first(&pool->carried));
    pthread_mutex_destroy(&pool->lock);
    let_tables_go(pool, 0);
    free(pool->handed);
    free(pool->workers);
    free(pool);
}
