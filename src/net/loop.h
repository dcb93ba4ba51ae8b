/*
 * One thread's event loop, and the order of work in one turn of it.
 *
 * A turn is one iteration of the libuv loop: handlers only append output and mark links. After the poll, and again
 * before the next, the loop first calls on_wake of the links that asked for it, then writes each dirty lane once, then
 * each dirty client once. So what all clients sent in a turn is one write to Redis, which is made before replies are
 * written. No timer delays any output.
 */
#ifndef WEIR_NET_LOOP_H
#define WEIR_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/histo.h"
#include "base/list.h"

#define READ_BUFFER_BYTES 262144 /* large values pass in few system calls */

enum rank { RANK_LANE, RANK_CLIENT, RANK_COUNT }; /* what a link is; lanes are written before clients */

struct tls_scratch;

/* What all links of a rank have carried, in bytes (of TLS the plain text), and how often reading was paused. */
struct traffic {
    _Atomic uint64_t read;
    _Atomic uint64_t written;
    _Atomic uint64_t pauses; /* how often a link stopped reading because what it had read could not be passed on */
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t not_idle;            /* active while work is left over, so that the poll returns at once */
    uv_timer_t trim;               /* calls malloc_trim soon after much memory was freed */
    struct list dirty[RANK_COUNT]; /* links with output to be written, by link.dirty */
    struct list woken;             /* links that link_wake was called on, by link.woken */
    struct pool pool;
    struct traffic traffic[RANK_COUNT];
    struct histo turns;  /* how long turns that wrote something took: input that came meanwhile waited for that long */
    uint64_t now_ns;     /* the clock, read after the newest data was read; what handlers use as the time */
    uint64_t turn_ns;    /* when the first data of this turn was read; 0: none has been */
    uint64_t writing_ns; /* when the lanes' output began to be written last ... */
    uint64_t written_ns; /* ... and when all output had been */
    /* All dirty links have been written, as far as their sockets took it. May be NULL. */
    void (*on_written)(struct loop *loop);
    /* In every turn, before woken links are called. May be NULL. */
    void (*on_turn)(struct loop *loop);
    /* Is another turn to follow at once? May be NULL. */
    bool (*is_unsettled)(struct loop *loop);
    void *owner;                     /* for these */
    char *read_buffer;               /* shared by all links: what is read is used up or copied before the next read */
    struct tls_scratch *tls_scratch; /* buffers shared by all TLS links; NULL: not needed yet */
};

/* Data has been read: take the time. */
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
