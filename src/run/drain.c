#include "run/drain.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/*
 * The longest tick of a drain (front/client/drain.h). Chosen: long enough for a command on its way,
 * short enough for an operator that waits for weir to stop.
 */
#define TICK_MS 1000
#define TICKS_IN_TIMEOUT 10

/* The longest interval at which the log names the clients that are left. */
#define TELL_MS 5000
#define TELLS_IN_TIMEOUT 6
#define HOLDERS_ROOM (DRAIN_NAMED * (DRAIN_LINE + 2) + 32)

static void on_stage(void *arg, enum worker_stage stage)
{
    struct drain *drain = arg;
    if (stage == WORKER_IS_DEAF) {
        listening_shut(drain->listening, drain->has_successor);
        log_info("%sweir no longer accepts connections", drain->prefix);
    } else {
        log_info("%sall clients are gone", drain->prefix);
        drain->on_over(drain->arg);
    }
}

/*
 * Prints the clients that are left: "a (in MULTI), b (subscribed), and 4 more". Returns the number
 * of clients.
 */
static unsigned list_holders(const struct drain *drain, char out[HOLDERS_ROOM])
{
    struct drain_holders holders;
    size_t len = 0;
    worker_pool_holders(drain->pool, &holders);
    out[0] = '\0';
    for (unsigned i = 0; i < holders.n_named; i++)
        len += (size_t)snprintf(out + len, HOLDERS_ROOM - len, "%s%s", i > 0 ? ", " : "",
                                holders.named[i]);
    if (holders.n > holders.n_named)
        snprintf(out + len, HOLDERS_ROOM - len, ", and %u more", holders.n - holders.n_named);
    return holders.n;
}

static void on_telling(uv_timer_t *timer)
{
    const struct drain *drain = timer->data;
    char holders[HOLDERS_ROOM];
    unsigned n = list_holders(drain, holders);
    uint64_t over_ns = clock_ns() - drain->began_ns;
    uint64_t left_ns = drain->timeout_ns > over_ns ? drain->timeout_ns - over_ns : 0;
    if (n > 0)
        log_info("%sdraining: %u client%s left, closed in %.1f s: %s", drain->prefix, n,
                 n == 1 ? " is" : "s are", (double)left_ns / (double)NS_PER_S, holders);
}

static void drain_on_deadline(uv_timer_t *timer)
{
    struct drain *drain = timer->data;
    char holders[HOLDERS_ROOM];
    bool is_known = list_holders(drain, holders) > 0;
    log_warn("%sdrain-timeout is over: weir closes %u clients with unfinished work%s%s",
             drain->prefix, atomic_load(drain->clients), is_known ? ": " : "", holders);
    drain->on_over(drain->arg);
}

/* Returns the time-out divided by `parts`, in ms; at most `most_ms`. */
static uint64_t part_ms(uint64_t timeout_ns, uint64_t parts, uint64_t most_ms)
{
    uint64_t own_ms = timeout_ns / NS_PER_MS / parts + 1;
    return own_ms < most_ms ? own_ms : most_ms;
}

void drain_begin(struct drain *drain, struct loop *loop, bool has_successor)
{
    if (drain->timeout_ns == 0) {
        drain->on_over(drain->arg);
        return;
    }
    drain->is_on = true;
    drain->has_successor = has_successor;
    if (has_successor)
        snprintf(drain->prefix, sizeof drain->prefix, "process %d: ", getpid());
    uv_timer_init(&loop->uv, &drain->deadline);
    drain->deadline.data = drain;
    drain->began_ns = clock_ns();
    uv_timer_start(&drain->deadline, drain_on_deadline, drain->timeout_ns / NS_PER_MS, 0);
    uv_timer_init(&loop->uv, &drain->telling);
    drain->telling.data = drain;
    uint64_t tell_ms = part_ms(drain->timeout_ns, TELLS_IN_TIMEOUT, TELL_MS);
    uv_timer_start(&drain->telling, on_telling, tell_ms, tell_ms);
    if (!has_successor)
        listening_refuse(drain->listening);
    worker_pool_drain(drain->pool, part_ms(drain->timeout_ns, TICKS_IN_TIMEOUT, TICK_MS),
                      has_successor, on_stage, drain);
}

void drain_close(struct drain *drain)
{
    if (!drain->is_on)
        return;
    uv_close((uv_handle_t *)&drain->deadline, NULL);
    uv_close((uv_handle_t *)&drain->telling, NULL);
}
