#include "run/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "front/client/drain.h"
#include "front/life.h"
#include "front/client/login.h"
#include "front/client/feed.h"
#include "front/commands/admin_commands.h"
#include "net/listen.h"

/* Work that the main thread has handed over and the worker has not taken yet; under the lock. */
struct inbox {
    pthread_mutex_t lock;
    struct tables tables; /* rules is NULL if no new tables wait */
    /* admin commands that have been carried out, or that visit every worker */
    struct list admin_commands;
    uint64_t tick_ms; /* drain interval of clients; 0: not draining */
    unsigned pokes;
    bool has_successor;
    bool must_stop;
};

struct worker {
    pthread_t thread;
    struct loop loop;
    struct front front;
    const struct worker_ops *ops;
    const struct opening *openings; /* one for each listener */
    struct listener *listeners;
    size_t n_listeners;
    bool is_shut;     /* the operators' listeners are closed, too */
    unsigned adopted; /* the generation of the tables in use */
    /* admin commands that visit every worker and are now at this worker; the first has begun */
    struct list rounds;
    uv_async_t told;
    struct inbox inbox;
    _Atomic unsigned generation;
    _Atomic unsigned beats;
    _Atomic int stage; /* enum worker_stage */
};

/* ---- accepting ---- */

/*
 * True if the process at the other end may use the operators' socket: it runs as weir's user, or as
 * root.
 */
static bool worker_is_operator(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    if (peer.uid == geteuid() || peer.uid == 0)
        return true;
    log_at(LOG_SITE_OPERATOR, LOG_WARN,
           "the operators' socket is closed to user %ld (process %ld): connect as root "
           "or as weir's user",
           (long)peer.uid, (long)peer.pid);
    return false;
}

static void on_accept(struct listener *listener, int fd, const struct link_peer *peer)
{
    struct worker *worker = listener->arg;
    const struct listen_address *listen_address =
        worker->openings[listener - worker->listeners].listen_address;
    if (fd < 0)
        front_accept_failed(&worker->front, listen_address);
    else if (listen_address->is_admin && !worker_is_operator(fd))
        close(fd);
    else
        front_accept(&worker->front, fd, peer, listen_address);
}

static void start_listeners(struct worker *worker)
{
    worker->listeners = mem_zalloc(worker->n_listeners, sizeof *worker->listeners);
    for (size_t i = 0; i < worker->n_listeners; i++) {
        const struct opening *opening = &worker->openings[i];
        int error =
            listener_start(&worker->listeners[i], &worker->loop, opening->fd, on_accept, worker);
        if (error != 0) {
            log_error("cannot watch a listening socket: %s", strerror(-error));
            exit(EXIT_SYSTEM);
        }
    }
}

/* ---- the inbox ---- */

static void worker_tell_adopted(struct worker *worker)
{
    atomic_store(&worker->generation, worker->adopted);
    worker->ops->on_news(worker->ops->arg);
}

static void adopt(struct worker *worker, const struct tables *tables)
{
    front_adopt(&worker->front, tables);
    worker->adopted = tables->generation;
    if (!front_is_binding(&worker->front))
        worker_tell_adopted(worker);
}

/* Does a bounded part of the pending work. The rest follows in the next iterations. */
static void worker_go_on(struct worker *worker)
{
    if (front_is_binding(&worker->front) && front_bind_some(&worker->front))
        worker_tell_adopted(worker);
    if (!list_is_empty(&worker->rounds)) {
        struct admin_command *admin_command =
            container_of(worker->rounds.next, struct admin_command, in_queue);
        if (front_round_some(&worker->front, admin_command)) {
            list_take(&admin_command->in_queue);
            worker->ops->on_admin_command(worker->ops->arg, admin_command);
        }
    }
}

/* True if work is left, or if new tables wait for the end of the work in progress. */
static bool has_more(struct worker *worker)
{
    struct inbox *inbox = &worker->inbox;
    pthread_mutex_lock(&inbox->lock);
    bool has_tables = inbox->tables.rules != NULL;
    pthread_mutex_unlock(&inbox->lock);
    return has_tables || front_is_binding(&worker->front) || !list_is_empty(&worker->rounds);
}

static void worker_reach(struct worker *worker, enum worker_stage stage)
{
    atomic_store(&worker->stage, stage);
    worker->ops->on_news(worker->ops->arg);
}

static void close_listeners(struct worker *worker, bool are_operators, bool accept_rest)
{
    for (size_t i = 0; i < worker->n_listeners; i++) {
        if (worker->openings[i].listen_address->is_admin != are_operators)
            continue;
        if (accept_rest)
            listener_accept_rest(&worker->listeners[i]);
        listener_close(&worker->listeners[i]);
    }
}

/* Closes all listeners but the operators', which stay open to the end. */
static void stop_listening(struct worker *worker, bool accept_rest)
{
    if (worker_stage(worker) != WORKER_SERVES)
        return;
    close_listeners(worker, false, accept_rest);
    worker_reach(worker, WORKER_IS_DEAF);
}

static void shut_operators_out(struct worker *worker)
{
    if (!worker->is_shut)
        close_listeners(worker, true, false);
    worker->is_shut = true;
}

void worker_emptied(void *arg)
{
    worker_reach(arg, WORKER_IS_EMPTY);
}

static void stop(struct worker *worker)
{
    stop_listening(worker, false);
    shut_operators_out(worker);
    front_close(&worker->front);
    uv_close((uv_handle_t *)&worker->told, NULL);
    loop_close(&worker->loop);
}

static void worker_on_told(uv_async_t *async)
{
    struct worker *worker = async->data;
    struct inbox *inbox = &worker->inbox;
    struct list admin_commands;
    struct tables tables = {0};
    pthread_mutex_lock(&inbox->lock);
    if (!front_is_binding(&worker->front)) {
        tables = inbox->tables;
        inbox->tables = (struct tables){0};
    }
    list_take_all(&admin_commands, &inbox->admin_commands);
    uint64_t tick_ms = inbox->tick_ms;
    inbox->tick_ms = 0;
    bool has_successor = inbox->has_successor;
    bool must_stop = inbox->must_stop;
    atomic_store(&worker->beats, inbox->pokes);
    pthread_mutex_unlock(&inbox->lock);

    if (tables.rules != NULL)
        adopt(worker, &tables);
    while (!list_is_empty(&admin_commands)) {
        struct admin_command *admin_command =
            container_of(admin_commands.next, struct admin_command, in_queue);
        list_take(&admin_command->in_queue);
        if (admin_command->is_on_its_round)
            list_push(&worker->rounds, &admin_command->in_queue);
        else
            front_admin_command_done(&worker->front, admin_command);
    }
    worker_go_on(worker);
    memory_pressure_look(&worker->front);
    login_look(&worker->front);
    if (tick_ms > 0) {
        if (has_successor)
            shut_operators_out(worker);
        stop_listening(worker, !has_successor);
        client_drain_begin(&worker->front, tick_ms, has_successor);
    }
    if (must_stop)
        stop(worker);
    else if (has_more(worker))
        uv_async_send(&worker->told);
}

void worker_adopt(struct worker *worker, const struct tables *tables)
{
    pthread_mutex_lock(&worker->inbox.lock);
    struct tables older = worker->inbox.tables;
    worker->inbox.tables = *tables;
    pthread_mutex_unlock(&worker->inbox.lock);
    tables_put(&older);
    uv_async_send(&worker->told);
}

unsigned worker_generation(const struct worker *worker)
{
    return atomic_load(&worker->generation);
}

const struct front *worker_front(const struct worker *worker)
{
    return &worker->front;
}

void worker_drain(struct worker *worker, uint64_t tick_ms, bool has_successor)
{
    pthread_mutex_lock(&worker->inbox.lock);
    worker->inbox.tick_ms = tick_ms;
    worker->inbox.has_successor = has_successor;
    pthread_mutex_unlock(&worker->inbox.lock);
    uv_async_send(&worker->told);
}

void worker_holders(struct worker *worker, struct drain_holders *out)
{
    client_drain_holders(&worker->front, out);
}

enum worker_stage worker_stage(const struct worker *worker)
{
    return (enum worker_stage)atomic_load(&worker->stage);
}

void worker_poke(struct worker *worker)
{
    pthread_mutex_lock(&worker->inbox.lock);
    worker->inbox.pokes++;
    pthread_mutex_unlock(&worker->inbox.lock);
    uv_async_send(&worker->told);
}

void worker_stir(void *arg)
{
    struct worker *worker = arg;
    uv_async_send(&worker->told);
}

unsigned worker_beats(const struct worker *worker)
{
    return atomic_load(&worker->beats);
}

void worker_return(struct worker *worker, struct admin_command *admin_command)
{
    pthread_mutex_lock(&worker->inbox.lock);
    list_push(&worker->inbox.admin_commands, &admin_command->in_queue);
    pthread_mutex_unlock(&worker->inbox.lock);
    uv_async_send(&worker->told);
}

void worker_give(void *arg, struct admin_command *admin_command)
{
    struct worker *worker = arg;
    admin_command->worker = worker;
    worker->ops->on_admin_command(worker->ops->arg, admin_command);
}

/* ---- the life of a worker ---- */

static void *worker_run(void *arg)
{
    struct worker *worker = arg;
    pthread_setname_np(pthread_self(), "worker"); /* the name is shown by top -H */
    loop_run(&worker->loop);
    return NULL;
}

struct worker *worker_start(struct front_settings *settings, unsigned index,
                            const struct listening *listening, const struct tables *tables,
                            const struct worker_ops *ops)
{
    struct worker *worker = mem_zalloc(1, sizeof *worker);
    worker->ops = ops;
    worker->openings = listening_openings(listening, index, &worker->n_listeners);
    atomic_init(&worker->generation, tables->generation);
    pthread_mutex_init(&worker->inbox.lock, NULL);
    list_init(&worker->inbox.admin_commands);
    list_init(&worker->rounds);
    loop_init(&worker->loop);
    front_init(&worker->front, &worker->loop, settings, index, worker, tables);
    uv_async_init(&worker->loop.uv, &worker->told, worker_on_told);
    worker->told.data = worker;
    start_listeners(worker);
    sigset_t before;
    signals_block(&before);
    int error = pthread_create(&worker->thread, NULL, worker_run, worker);
    signals_restore(&before);
    if (error != 0) {
        log_error("cannot start a worker thread: %s", uv_strerror(-error));
        exit(EXIT_SYSTEM);
    }
    return worker;
}

void worker_stop(struct worker *worker)
{
    pthread_mutex_lock(&worker->inbox.lock);
    worker->inbox.must_stop = true;
    pthread_mutex_unlock(&worker->inbox.lock);
    uv_async_send(&worker->told);
}

/* Frees admin commands that were answered too late: their clients are closed. */
static void drop_admin_commands(struct list *admin_commands)
{
    while (!list_is_empty(admin_commands)) {
        struct admin_command *admin_command =
            container_of(admin_commands->next, struct admin_command, in_queue);
        list_take(&admin_command->in_queue);
        admin_command_free(admin_command);
    }
}

void worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
    tables_put(&worker->inbox.tables);
    drop_admin_commands(&worker->inbox.admin_commands);
    drop_admin_commands(&worker->rounds);
    front_fini(&worker->front);
    loop_fini(&worker->loop);
    pthread_mutex_destroy(&worker->inbox.lock);
    free(worker->listeners);
    free(worker);
}
