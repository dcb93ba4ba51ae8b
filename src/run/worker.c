#include "run/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"

struct tables {
    struct command_table *commands;
    struct policies *policies;
};

struct worker {
    pthread_t thread;
    struct loop loop;
    struct front front;
    struct listener *listeners;
    size_t n_listeners;
    uv_async_t told;
    _Atomic(struct tables *) inbox; /* the newest tables; whoever takes them out owns them */
    _Atomic bool must_stop;
};

static void on_accept(struct listener *listener, int fd)
{
    struct worker *worker = listener->arg;
    front_accept(&worker->front, fd, listener->is_unix);
}

static void drop_tables(struct tables *tables)
{
    if (tables == NULL)
        return;
    command_table_put(tables->commands);
    policies_put(tables->policies);
    free(tables);
}

static void stop(struct worker *worker)
{
    for (size_t i = 0; i < worker->n_listeners; i++)
        listener_close(&worker->listeners[i]);
    front_close(&worker->front);
    uv_close((uv_handle_t *)&worker->told, NULL);
    loop_close(&worker->loop);
}

static void on_told(uv_async_t *async)
{
    struct worker *worker = async->data;
    struct tables *tables = atomic_exchange(&worker->inbox, NULL);
    if (tables != NULL) {
        front_adopt(&worker->front, tables->commands, tables->policies);
        free(tables);
    }
    if (atomic_load(&worker->must_stop))
        stop(worker);
}

static void *run(void *arg)
{
    struct worker *worker = arg;
    loop_run(&worker->loop);
    return NULL;
}

static void start_listeners(struct worker *worker, const struct worker_listen *listens, size_t n)
{
    worker->listeners = mem_zalloc(n, sizeof *worker->listeners);
    worker->n_listeners = n;
    for (size_t i = 0; i < n; i++) {
        int error =
            listener_start(&worker->listeners[i], &worker->loop, listens[i].fd, listens[i].is_unix, on_accept, worker);
        if (error != 0) {
            log_error("cannot watch a listening socket: %s", uv_strerror(error));
            exit(2);
        }
    }
}

struct worker *worker_start(struct front_settings *settings, const struct worker_listen *listens, size_t n_listens,
                            struct command_table *commands, struct policies *policies)
{
    struct worker *worker = mem_zalloc(1, sizeof *worker);
    loop_init(&worker->loop);
    front_init(&worker->front, &worker->loop, settings, commands, policies);
    uv_async_init(&worker->loop.uv, &worker->told, on_told);
    worker->told.data = worker;
    start_listeners(worker, listens, n_listens);
    int error = pthread_create(&worker->thread, NULL, run, worker);
    if (error != 0) {
        log_error("cannot start a worker thread: %s", uv_strerror(-error));
        exit(2);
    }
    return worker;
}

void worker_adopt(struct worker *worker, struct command_table *commands, struct policies *policies)
{
    struct tables *tables = mem_alloc(sizeof *tables);
    *tables = (struct tables){commands, policies};
    drop_tables(atomic_exchange(&worker->inbox, tables));
    uv_async_send(&worker->told);
}

void worker_stop(struct worker *worker)
{
    atomic_store(&worker->must_stop, true);
    uv_async_send(&worker->told);
}

void worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
    drop_tables(atomic_exchange(&worker->inbox, NULL));
    front_fini(&worker->front);
    loop_fini(&worker->loop);
    free(worker->listeners);
    free(worker);
}
