/* The life of a loop, and the order of work in its iterations: that of libuv 1.44. */
#include "tests/sim/loops.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/heap.h"
#include "tests/sim/kernel.h"
#include "tests/sim/uv_turn.h"

static struct sim_loop *loops[LOOPS_MAX];
static unsigned n_loops;
void (*on_world_step)(void);

static bool is_alive(const struct sim_loop *loop)
{
    return loop->uv->active_handles > 0 || loop->uv->closing_handles != NULL;
}

static void wake_again(struct sim_loop *loop)
{
    if (loop->pending != NULL || loop_has_events(loop) || loop->is_busy ||
        loop->uv->closing_handles != NULL || loop->uv->stop_flag != 0 || uv_is_signalled(loop))
        world_wake(&loop->party);
    const struct due *first = due_first(&loop->timers);
    if (first != NULL && first->at <= UINT64_MAX / 1000000)
        world_wake_at(&loop->party, first->at * 1000000);
}

static void take_turn(struct party *party)
{
    struct sim_loop *loop = container_of(party, struct sim_loop, party);
    if (!loop->is_running || loop->has_ended)
        return;
    if (!loop->is_at_head) {
        uv_update_time(loop->uv);
        uv_run_signals(loop);
        uv_run_asyncs(loop);
        uv_run_every(loop, CHECK);
        uv_run_closing(loop);
        loop->is_at_head = true;
        loop->turns++;
        if (!is_alive(loop) || loop->uv->stop_flag != 0) {
            loop->has_ended = true;
            return;
        }
    }
    uv_update_time(loop->uv);
    uv_run_timers(loop);
    uv_run_every(loop, IDLE);
    loop->has_told = false;
    uv_run_every(loop, PREPARE);
    loop->is_at_head = false;
    wake_again(loop);
}

struct sim_loop *loop_number(unsigned i)
{
    return i < n_loops ? loops[i] : NULL;
}

int uv_loop_init(uv_loop_t *uv)
{
    void *data = uv->data;
    memset(uv, 0, sizeof *uv);
    uv->data = data;
    if (n_loops == LOOPS_MAX)
        return UV_EMFILE;
    struct sim_loop *loop = loops[n_loops] = mem_zalloc(1, sizeof *loop);
    loop->uv = uv;
    loop->party = (struct party){.turn = take_turn,
                                 .kind = n_loops == 0 ? "main" : "worker",
                                 .index = n_loops,
                                 .is_weirs = true};
    loop->is_at_head = true;
    random_init(&loop->order, random_next(&kernel.chance), n_loops++);
    uv->internal_fields = loop;
    uv_update_time(uv);
    return 0;
}

int uv_loop_close(uv_loop_t *uv)
{
    struct sim_loop *loop = loop_of(uv);
    if (loop->n_handles > 0)
        return UV_EBUSY;
    world_leave(&loop->party);
    loop->is_running = false;
    dues_fini(&loop->timers);
    free(loop->ready);
    loop->ready = NULL;
    loops[loop->party.index] = NULL;
    free(loop);
    while (n_loops > 0 && loops[n_loops - 1] == NULL)
        n_loops--; /* the next loop after the last one is the main thread's again */
    return 0;
}

void uv_stop(uv_loop_t *uv)
{
    uv->stop_flag = 1;
}

struct sim_loop *loop_begin(void)
{
    struct sim_loop *loop = loops[n_loops - 1];
    loop->is_running = true;
    world_wake(&loop->party);
    return loop;
}

void loop_drive(struct sim_loop *loop)
{
    bool before = heap_is_weirs(false);
    while (!loop->has_ended) {
        if (on_world_step != NULL)
            on_world_step();
        if (!world_step())
            abort(); /* the loop is alive and waits for something that never comes */
    }
    (void)heap_is_weirs(before);
}

int uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    (void)mode;
    struct sim_loop *loop = loop_of(uv);
    if (loop->party.index > 0)
        return 0; /* a thread's loop, with all of its iterations done: see threads.c */
    loop->is_running = true;
    loop->has_ended = !is_alive(loop);
    world_wake(&loop->party);
    loop_drive(loop);
    uv->stop_flag = 0;
    return is_alive(loop);
}
