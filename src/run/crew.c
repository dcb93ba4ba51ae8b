#include "run/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

struct crew {
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
    void (*carry_out)(void *arg, struct order *order);
    void *arg;
    uv_async_t stirred; /* sent by workers that have something to report */
    /* admin commands carried out, waiting until every worker has adopted the tables */
    struct list carried;
    void (*on_stage)(void *arg, enum worker_stage stage); /* NULL: not draining */
    void *stage_arg;
    enum worker_stage told_stage;  /* the last stage that on_stage was called for */
    void (*on_adopted)(void *arg); /* see crew_when_adopted; NULL: none is waiting */
    void *adopted_arg;
    unsigned pokes; /* how often each worker was poked */

    pthread_mutex_t lock; /* protects given and is_stopping */
    struct list given;    /* new admin commands */
    bool is_stopping;     /* no more admin commands are taken */
};

/* ---- settings ---- */

void crew_settings_init(struct front_settings *settings, const struct config *config)
{
    settings->lanes_private = config->lanes_private;
    settings->subjects = subjects_new(config->max_subjects);
    settings->key_subjects = subjects_new(config->max_subjects);
    settings->addresses = subjects_new(config->max_subjects);
    settings->slowlog = slowlog_new();
    settings->n_workers = config->workers;
    settings->upstream_user = config->upstream_user != NULL ? slice_str(config->upstream_user) : SLICE("default");
    settings->tallies = mem_zalloc(config->workers, sizeof(struct tally *));
    settings->tops = mem_zalloc(config->workers, sizeof(struct top *));
    settings->stopping = mem_zalloc(LEDGER_LIMITS_MAX, sizeof *settings->stopping);
    settings->whoms = mem_zalloc(config->workers, sizeof(struct whom *));
    quota_settings_init(&settings->quota);
    settings->attempts = attempts_new(config->workers, worker_stir);
    if (getrandom(&settings->share_key, sizeof settings->share_key, 0) != (ssize_t)sizeof settings->share_key)
        abort();
    settings->reconnects = reconnects_new(settings->share_key);
    for (unsigned w = 0; w < config->workers; w++) {
        settings->tallies[w] = tallies_new();
        settings->tops[w] = top_new();
        settings->whoms[w] = whom_new();
    }
}

void crew_settings_fini(struct front_settings *settings)
{
    for (unsigned w = 0; w < settings->n_workers; w++) {
        free(settings->tallies[w]);
        top_free(settings->tops[w]);
        whom_free(settings->whoms[w]);
    }
    free(settings->tallies);
    free(settings->tops);
    free(settings->whoms);
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

static void stir(struct crew *crew)
{
    if (!crew->is_stopping)
        uv_async_send(&crew->stirred);
}

static void on_news(void *arg)
{
    struct crew *crew = arg;
    pthread_mutex_lock(&crew->lock);
    stir(crew);
    pthread_mutex_unlock(&crew->lock);
}

static void on_order(void *arg, struct order *order)
{
    struct crew *crew = arg;
    pthread_mutex_lock(&crew->lock);
    list_push(&crew->given, &order->in_queue);
    stir(crew);
    pthread_mutex_unlock(&crew->lock);
}

/* ---- on the main thread ---- */

static struct order *take_first(struct list *orders)
{
    struct order *order = container_of(orders->next, struct order, in_queue);
    list_take(&order->in_queue);
    return order;
}

static bool is_adopted(const struct crew *crew)
{
    for (unsigned w = 0; w < crew->n_workers; w++)
        if (worker_generation(crew->workers[w]) != crew->generation)
            return false;
    return true;
}

/* Passes the admin command to the next worker that takes part in it. False: none is left. */
static bool send_round(struct crew *crew, struct order *order)
{
    order->is_on_its_round = order_goes_round(order) && order->visited < crew->n_workers;
    if (order->is_on_its_round)
        worker_return(crew->workers[order->visited++], order);
    return order->is_on_its_round;
}

static void carry_out(struct crew *crew)
{
    struct list given;
    pthread_mutex_lock(&crew->lock);
    list_take_all(&given, &crew->given);
    pthread_mutex_unlock(&crew->lock);
    while (!list_is_empty(&given)) {
        struct order *order = take_first(&given);
        if (send_round(crew, order))
            continue;
        crew->carry_out(crew->arg, order);
        list_push(&crew->carried, &order->in_queue);
    }
}

/*
 * Releases all but the newest `keep` tables. The last reference is dropped on this thread: freeing
 * many policies would delay a worker's clients.
 */
static void let_tables_go(struct crew *crew, size_t keep)
{
    size_t n = crew->n_handed > keep ? crew->n_handed - keep : 0;
    for (size_t i = 0; i < n; i++)
        tables_put(&crew->handed[i]);
    if (n > 0)
        memmove(crew->handed, crew->handed + n, (crew->n_handed - n) * sizeof *crew->handed);
    crew->n_handed -= n;
}

static void note_handed(struct crew *crew, const struct tables *tables)
{
    crew->handed = mem_realloc(crew->handed, crew->n_handed + 1, sizeof *crew->handed);
    crew->handed[crew->n_handed++] = tables_get(tables);
}

/*
 * Calls settle once per generation, before any client gets an answer: the change is complete by
 * then.
 */
static void settle(struct crew *crew)
{
    if (crew->settle == NULL || crew->settled == crew->generation || !is_adopted(crew))
        return;
    crew->settled = crew->generation;
    crew->settle(crew->settle_arg);
}

static void return_carried(struct crew *crew)
{
    if (is_adopted(crew))
        let_tables_go(crew, 1);
    settle(crew);
    while (is_adopted(crew) && !list_is_empty(&crew->carried)) {
        struct order *order = take_first(&crew->carried);
        worker_return(order->worker, order);
    }
}

static void tell_adopted(struct crew *crew)
{
    void (*on_adopted)(void *arg) = crew->on_adopted;
    settle(crew);
    if (on_adopted == NULL || !is_adopted(crew))
        return;
    crew->on_adopted = NULL;
    on_adopted(crew->adopted_arg);
}

static enum worker_stage stage_of_all(const struct crew *crew)
{
    enum worker_stage least = WORKER_IS_EMPTY;
    for (unsigned w = 0; w < crew->n_workers; w++) {
        enum worker_stage stage = worker_stage(crew->workers[w]);
        least = stage < least ? stage : least;
    }
    return least;
}

static void tell_stages(struct crew *crew)
{
    while (crew->on_stage != NULL && crew->told_stage < stage_of_all(crew))
        crew->on_stage(crew->stage_arg, ++crew->told_stage);
}

static void on_stirred(uv_async_t *async)
{
    struct crew *crew = async->data;
    return_carried(crew);
    if (list_is_empty(&crew->carried)) {
        carry_out(crew);
        return_carried(crew);
    } /* otherwise carried out after the last worker's adoption */
    tell_adopted(crew);
    tell_stages(crew);
}

static struct tables tables_of_crew(const struct crew *crew, const struct tables *tables)
{
    struct tables own = tables_get(tables);
    own.generation = crew->generation;
    return own;
}

void crew_publish(struct crew *crew, const struct tables *tables)
{
    crew->generation++;
    note_handed(crew, tables);
    for (unsigned w = 0; w < crew->n_workers; w++) {
        struct tables own = tables_of_crew(crew, tables);
        worker_adopt(crew->workers[w], &own);
    }
}

void crew_when_adopted(struct crew *crew, void (*on_adopted)(void *arg), void *arg)
{
    crew->on_adopted = on_adopted;
    crew->adopted_arg = arg;
    tell_adopted(crew);
}

void crew_watch(struct crew *crew, void (*settle_fn)(void *arg), void *arg)
{
    crew->settle = settle_fn;
    crew->settle_arg = arg;
}

void crew_obey(struct crew *crew, void (*carry_out_fn)(void *arg, struct order *order), void *arg)
{
    crew->carry_out = carry_out_fn;
    crew->arg = arg;
}

struct crew *crew_start(struct loop *main_loop, struct front_settings *settings, const struct listening *listening,
                        const struct tables *tables)
{
    struct crew *crew = mem_zalloc(1, sizeof *crew);
    crew->ops = (struct worker_ops){on_news, on_order, crew};
    crew->n_workers = settings->n_workers;
    crew->workers = mem_zalloc(crew->n_workers, sizeof(struct worker *));
    list_init(&crew->carried);
    list_init(&crew->given);
    pthread_mutex_init(&crew->lock, NULL);
    uv_async_init(&main_loop->uv, &crew->stirred, on_stirred);
    crew->stirred.data = crew;
    settings->give = worker_give;
    settings->on_empty = worker_emptied;
    note_handed(crew, tables);
    for (unsigned w = 0; w < crew->n_workers; w++) {
        struct tables own = tables_of_crew(crew, tables);
        crew->workers[w] = worker_start(settings, w, listening, &own, &crew->ops);
    }
    return crew;
}

const struct front *crew_front(const struct crew *crew, unsigned worker)
{
    return worker_front(crew->workers[worker]);
}

void crew_drain(struct crew *crew, uint64_t tick_ms, bool has_successor, void (*on_stage)(void *arg, enum worker_stage),
                void *arg)
{
    crew->on_stage = on_stage;
    crew->stage_arg = arg;
    for (unsigned w = 0; w < crew->n_workers; w++)
        worker_drain(crew->workers[w], tick_ms, has_successor);
}

void crew_holders(struct crew *crew, struct drain_holders *out)
{
    struct drain_holders some;
    out->n = out->n_named = 0;
    for (unsigned w = 0; w < crew->n_workers; w++) {
        worker_holders(crew->workers[w], &some);
        out->n += some.n;
        for (unsigned i = 0; i < some.n_named && out->n_named < DRAIN_NAMED; i++)
            memcpy(out->named[out->n_named++], some.named[i], DRAIN_LINE);
    }
}

bool crew_beats(struct crew *crew)
{
    for (unsigned w = 0; w < crew->n_workers; w++)
        if (worker_beats(crew->workers[w]) != crew->pokes)
            return false;
    crew->pokes++;
    for (unsigned w = 0; w < crew->n_workers; w++)
        worker_poke(crew->workers[w]);
    return true;
}

void crew_stir(struct crew *crew)
{
    for (unsigned w = 0; w < crew->n_workers; w++)
        worker_stir(crew->workers[w]);
}

void crew_stop(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->is_stopping = true;
    pthread_mutex_unlock(&crew->lock);
    uv_close((uv_handle_t *)&crew->stirred, NULL);
    for (unsigned w = 0; w < crew->n_workers; w++)
        worker_stop(crew->workers[w]);
}

void crew_join(struct crew *crew)
{
    for (unsigned w = 0; w < crew->n_workers; w++)
        worker_join(crew->workers[w]);
    while (!list_is_empty(&crew->given))
        order_free(take_first(&crew->given));
    while (!list_is_empty(&crew->carried))
        order_free(take_first(&crew->carried));
    pthread_mutex_destroy(&crew->lock);
    let_tables_go(crew, 0);
    free(crew->handed);
    free(crew->workers);
    free(crew);
}
