/*
 * The event loop of one thread, and the order of work in one iteration.
 *
 * An iteration waits, then reports events to links and listeners (net/poller.h). Handlers only
 * append output and mark links. The loop then calls on_wake of woken links, writes each dirty lane
 * once, and then each dirty client once. All requests of one iteration on a lane are therefore one
 * write, made before replies are written. If on_iteration returns true, woken links have much to
 * do. The loop then writes the other links before on_wake as well, except for patient links
 * (link.is_patient). No timer delays any output.
 *
 * Timers, signals and messages between threads are libuv's. libuv's loop is the outer loop.
 * Iterations run at the point where libuv would wait, until libuv itself has an event.
 */
#ifndef WEIR_NET_LOOP_H
#define WEIR_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/histo.h"
#include "base/list.h"
#include "net/poller.h"

/*
 * time in one iteration for links woken by link_wake_again; bounds the delay of other links
 * (chosen)
 */
#define LOOP_AGAIN_NS (200 * NS_PER_US)
#define READ_BUFFER_BYTES 262144 /* large values pass in few system calls (chosen) */

/* kind of a link; lanes are written before clients */
enum rank { RANK_LANE, RANK_CLIENT, RANK_COUNT };

struct tls_scratch;

/* Traffic of all links of a rank, in bytes (plain text for TLS). */
struct traffic {
    _Atomic uint64_t read;
    _Atomic uint64_t written;
    _Atomic uint64_t pauses; /* how often a link stopped reading because of back-pressure */
};

/* ---- the pipe for splice(2) ---- */

#define SPLICE_PIPE_MOST 262144 /* most bytes in the pipe at a time (chosen) */

/*
 * splice(2) moves bytes from one socket to another without a copy to weir's memory and back. One
 * pipe serves all links of a loop, because the pipe is empty between two calls of splice_pipe_pass.
 * Bytes that the second socket does not take are at once read from the pipe (splice_pipe_fetch).
 */
struct splice_pipe {
    int ends[2]; /* descriptors of the pipe, in the order of pipe(2); -1: no usable pipe */
};

/*
 * Makes the pipe. If no descriptor is free, no pipe works, and links copy bytes by read and write.
 */
void splice_pipe_init(struct splice_pipe *splice_pipe);
void splice_pipe_fini(struct splice_pipe *splice_pipe);

static inline bool splice_pipe_works(const struct splice_pipe *splice_pipe)
{
    return splice_pipe->ends[0] >= 0;
}

struct spliced {
    ssize_t taken; /* bytes taken from the first socket; 0: end of input; -1: error, see errno */
    /* bytes taken that the second socket has not accepted; to be read by splice_pipe_fetch */
    size_t left;
    int error; /* errno of the second socket; 0: no error, or the socket is full */
};

/* Splices at most `most` bytes. errno EINVAL: the sockets do not support splice. */
struct spliced splice_pipe_pass(const struct splice_pipe *splice_pipe, int from, int to,
                                size_t most);

/*
 * Reads the bytes left in the pipe. False if the bytes are lost; the pipe is then not usable any
 * more.
 */
__attribute__((warn_unused_result)) bool splice_pipe_fetch(struct splice_pipe *splice_pipe,
                                                           char *at, size_t n);

/* ---- the loop ---- */

struct loop {
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t not_idle;            /* active while libuv polls, which makes libuv return at once */
    uv_timer_t trim;               /* calls malloc_trim soon after much memory was freed */
    struct list dirty[RANK_COUNT]; /* links with output to write, by link.dirty */
    struct list woken;             /* links woken by link_wake, by link.woken */
    /* links woken by link_wake_again, by link.woken */
    struct list again;
    struct list closed; /* closed links before on_closed, by link.dirty */
    struct poller poller;
    struct splice_pipe splice_pipe;
    /* open links, and closed links before on_closed; the loop runs while a link is left */
    unsigned n_links;
    bool is_closing; /* loop_close has been called */
    bool goes_on;    /* links of `again` are being called */
    struct pool pool;
    struct traffic traffic[RANK_COUNT];
    /*
     * durations of iterations with output; input that arrives during an iteration waits for the
     * iteration's end
     */
    struct histo iterations;
    uint64_t now_ns;       /* time after the newest read; the time that handlers use */
    uint64_t iteration_ns; /* time of the first read in this iteration; 0: no read yet */
    uint64_t writing_ns;   /* time at which the last writing of output began */
    uint64_t written_ns;   /* time at which the last writing of output ended */
    /*
     * Called when all dirty links are written, as far as their sockets took the output. May be
     * NULL.
     */
    void (*on_written)(struct loop *loop);
    /*
     * Called in every iteration before on_wake. Returns true if output must be written before
     * on_wake of woken links. May be NULL.
     */
    bool (*on_iteration)(struct loop *loop);
    /*
     * Called at the end of every iteration. Returns true if the next iteration must follow without
     * waiting for events. May be NULL.
     */
    bool (*is_unsettled)(struct loop *loop);
    void *owner; /* argument for these callbacks */
    /* shared by all links: input is consumed or copied before the next read */
    char *read_buffer;
    struct tls_scratch *tls_scratch; /* buffers shared by all TLS links; NULL: not needed yet */
};

/* Updates now_ns and iteration_ns. Called when data has been read. */
static inline void loop_tick(struct loop *loop)
{
    uint64_t now_ns = clock_ns();
    if (loop->iteration_ns == 0)
        loop->iteration_ns = now_ns;
    loop->now_ns = now_ns;
}

/* Counts a new link in n_links, until the link's on_closed has returned. */
void loop_hold(struct loop *loop);

/* Initialises the loop. Exits the process if the system refuses a resource. */
void loop_init(struct loop *loop);
void loop_run(struct loop *loop);
/* Frees the loop's memory. Called after the last handle is closed. */
void loop_fini(struct loop *loop);

/* Returns the buffers for TLS; the first call allocates the buffers. NULL if out of memory. */
struct tls_scratch *loop_tls_scratch(struct loop *loop);

/*
 * Closes the loop's own handles. loop_run returns when all links and all other handles are closed
 * as well.
 */
void loop_close(struct loop *loop);

#endif
