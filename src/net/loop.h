/*
 * One thread's event loop, and the order of work in one turn of it.
 *
 * In a turn handlers only append output and mark links. After the poll, and again before the next, the loop first
 * wakes the links that asked for it, then writes each dirty lane once, then each dirty client once: so what all clients
 * sent in a turn is one write to Redis, and the next batch is on its way before replies are written. Nothing here
 * waits on a timer.
 */
#ifndef WEIR_NET_LOOP_H
#define WEIR_NET_LOOP_H

#include <stdint.h>
#include <uv.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/histo.h"
#include "base/list.h"

#define READ_BUFFER_BYTES 262144 /* large values pass in few system calls */

enum rank { RANK_LANE, RANK_CLIENT, RANK_COUNT }; /* the order of writing */

struct tls_scratch;

/* What all links of a rank have carried, in bytes (of TLS only what it carries), and how often they would not. */
struct traffic {
    _Atomic uint64_t read;
    _Atomic uint64_t written;
    _Atomic uint64_t pauses; /* times that reading stopped because what had been read could not go on */
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t not_idle; /* active while work is left over, so that the poll does not wait */
    uv_timer_t trim;    /* soon after much memory was freed: the allocator keeps it until told */
    struct list dirty[RANK_COUNT];
    struct list woken;
    struct pool pool;
    struct traffic traffic[RANK_COUNT];
    struct histo turns;  /* how long those took that wrote something: what came meanwhile waited for so long */
    uint64_t now_ns;     /* read after the last data came, so never before it was sent */
    uint64_t turn_ns;    /* when the first data of this turn came; 0: none has */
    uint64_t writing_ns; /* when the lanes' output began to be written last ... */
    uint64_t written_ns; /* ... and when all that there was had been */
    /* All output that there was has been written, as far as it could be. NULL: nobody wants to know. */
    void (*on_written)(struct loop *loop);
    void *owner;       /* for on_written */
    char *read_buffer; /* one for all links of the thread: what is read is used up or copied before the next read */
    struct tls_scratch *tls_scratch; /* the same for TLS; NULL: not yet needed */
};

/* Something has come. */
static inline void loop_tick(struct loop *loop)
{
    loop->now_ns = clock_ns();
    if (loop->turn_ns == 0)
        loop->turn_ns = loop->now_ns;
}

/* Ends the process when the system refuses a loop. */
void loop_init(struct loop *loop);
void loop_run(struct loop *loop);
/* After the last handle has been closed. */
void loop_fini(struct loop *loop);

/* Made when it is first asked for; NULL: out of memory. */
struct tls_scratch *loop_tls_scratch(struct loop *loop);

/* Close the loop's own handles; loop_run returns once every other handle is closed too. */
void loop_close(struct loop *loop);

#endif
