/*
 * One thread's event loop, and the order of work in one turn of it.
 *
 * In a turn the loop waits, and tells links and listeners what has come (net/poller.h): handlers only append output and
 * mark links. Then it calls on_wake of the links that asked for it, writes each dirty lane once, and then each dirty
 * client once. So what all clients sent in a turn is one write to Redis, which is made before replies are written. Only
 * where on_turn says that woken links have much to do are the others, but for patient ones, written before it, too.
 * No timer delays any output.
 *
 * Timers, signals and what other threads send are libuv's. Its loop is the outer one: the turns are taken where it
 * would begin to wait, until something of its own is due.
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
#include "net/poller.h"
#include "net/siphon.h"

#define LOOP_AGAIN_NS (200 * NS_PER_US) /* of a turn for links that only go on: who else has sent waits for no longer */
#define READ_BUFFER_BYTES 262144        /* large values pass in few system calls */

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
    uv_idle_t not_idle;            /* active while libuv polls, so that it returns at once */
    uv_timer_t trim;               /* calls malloc_trim soon after much memory was freed */
    struct list dirty[RANK_COUNT]; /* links with output to be written, by link.dirty */
    struct list woken;             /* links that link_wake was called on, by link.woken */
    struct list again;             /* the same of link_wake_again: they have much to do, and go on with it */
    struct list closed;            /* links whose on_closed is still to be called, by link.dirty */
    struct poller poller;
    struct siphon siphon;
    unsigned n_links; /* open, or closed and in that list: as long as there are any the loop goes on */
    bool is_closing;  /* loop_close has been called */
    bool goes_on;     /* links of `again` are being called */
    struct pool pool;
    struct traffic traffic[RANK_COUNT];
    struct histo turns;  /* how long turns that wrote something took: input that came meanwhile waited for that long */
    uint64_t now_ns;     /* the clock, read after the newest data was read; what handlers use as the time */
    uint64_t turn_ns;    /* when the first data of this turn was read; 0: none has been */
    uint64_t writing_ns; /* when output began to be written last ... */
    uint64_t written_ns; /* ... and when all output had been */
    /* All dirty links have been written, as far as their sockets took it. May be NULL. */
    void (*on_written)(struct loop *loop);
    /* In every turn, before woken links are called. True: what is there is not to wait for them. May be NULL. */
    bool (*on_turn)(struct loop *loop);
    /* At the end of every turn: is another to follow at once? May be NULL. */
    bool (*is_unsettled)(struct loop *loop);
    void *owner;                     /* for these */
    char *read_buffer;               /* shared by all links: what is read is used up or copied before the next read */
    struct tls_scratch *tls_scratch; /* buffers shared by all TLS links; NULL: not needed yet */
};

/* Data has been read: take the time. */
static inline void loop_tick(struct loop *loop)
{
    uint64_t now_ns = clock_ns();
    if (loop->turn_ns == 0)
        loop->turn_ns = now_ns;
    loop->now_ns = now_ns;
}

/* A link begins to be; it has ended when its on_closed has been called. */
void loop_hold(struct loop *loop);

/* Ends the process when the system refuses a loop. */
void loop_init(struct loop *loop);
void loop_run(struct loop *loop);
/* After the last handle has been closed. */
void loop_fini(struct loop *loop);

/* Made when it is first asked for; NULL: out of memory. */
struct tls_scratch *loop_tls_scratch(struct loop *loop);

/* Close the loop's own handles; loop_run returns once every link and every other handle is closed too. */
void loop_close(struct loop *loop);

#endif
