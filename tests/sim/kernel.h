/*
 * The simulated system: descriptors, listening sockets, and connections between weir and the
 * parties around it.
 *
 * weir's side of a connection is a descriptor, used by the system calls in syscalls.c. The other
 * side, here called the host's, is a struct conn. Clients dial weir, and weir dials Redis. Failures
 * are drawn from the run's odds.
 */
#ifndef WEIR_SIM_KERNEL_H
#define WEIR_SIM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/slice.h"
#include "tests/sim/pipe.h"
#include "tests/sim/world.h"

#define KERNEL_FIRST_FD 1000
#define KERNEL_FDS_MAX 8192
#define KERNEL_FDS_ENOUGH 1024

/* In millionths, except where a unit is named. */
struct odds {
    uint32_t cut_read, cut_write; /* a call transfers only a part */
    uint32_t again;               /* a call returns EAGAIN although it could go on */
    uint32_t interrupted;         /* a call returns EINTR */
    uint32_t broken;              /* a call reports a lost connection */
    uint32_t accept_short, accept_aborted;
    uint32_t socket_short;
    uint32_t watch_short;  /* no memory to watch another descriptor */
    uint32_t unreachable;  /* a connection to Redis fails at once */
    uint32_t timed_out;    /* a connection to Redis times out */
    uint32_t refuse, drop; /* a connection to Redis is refused, or never answered */
    uint64_t delay_ns;     /* longest delay of each piece */
    size_t window;         /* bytes under way in each direction */
    uint32_t fds;          /* number of descriptors */
};

/*
 * The name of a connection: the `life`th of client `index`, or the `index`th that weir has opened
 * to Redis.
 */
enum conn_side { SIDE_NOBODY, SIDE_CLIENT, SIDE_LANE, SIDE_OPERATOR };
struct conn_name {
    enum conn_side side;
    unsigned index, life;
};

enum conn_state { CONN_CONNECTING, CONN_OPEN, CONN_FAILED };

/* weir has read `upto` bytes at this time. */
struct moment {
    uint64_t upto, at_ns;
};

struct conn {
    unsigned number; /* number among the connections of this run */
    struct conn_name name;
    struct pipe to_weir, to_host;
    enum conn_state state; /* as the dialling side, weir, sees it */
    int error;             /* reported to weir once */
    int fd;                /* weir's; -1: not accepted yet, or closed */
    bool weir_has_closed, weir_has_shut, host_has_closed;
    bool is_unix;
    unsigned uid;                 /* of the peer of a Unix socket */
    struct sockaddr_storage peer; /* the host's address */
    socklen_t peer_len;
    /* woken when bytes have arrived or there is space again; NULL: closed */
    struct party *host;
    void *owner;           /* belongs to the host */
    struct bell bell;      /* rings when the connection is established */
    struct bell *left;     /* rung when both sides have closed; NULL: none */
    uint64_t read_by_weir; /* bytes, ever */
    /* times of reads, oldest first: [first, last) of room; conn_read_at consumes them */
    struct moment *moments;
    size_t first_moment, last_moment, moment_room;
    bool host_wants_space;
    bool counts_reads; /* record the times of weir's reads in `moments` */
};

/* A byte count, and when it last moved. */
struct meter {
    uint64_t bytes, last_ns, last_step;
};

/* Callbacks for faults on single connections (links.h), which set marks on the pipes. */
struct striker {
    void (*on_named)(struct conn *conn);
    void (*on_marked)(struct conn *conn, bool to_weir); /* the pipe has reached its mark */
    void (*on_gone)(const struct conn *conn);           /* the pointer is invalid afterwards */
};

struct kernel {
    struct odds odds;
    struct random chance;
    unsigned n_open;    /* descriptors */
    unsigned n_conns;   /* ever */
    unsigned n_live;    /* now */
    unsigned n_lanes;   /* ever */
    struct meter heard; /* bytes that weir has read from clients */
    struct meter asked; /* bytes that weir has sent to Redis */
    int64_t wall_ns;    /* offset of the wall clock */
    /* weir dials an upstream: sets host and owner. False: refused. */
    bool (*on_dialled)(struct conn *conn);
    /* true: the connection is never answered; NULL: each is answered */
    bool (*is_silent)(const struct conn *conn);
    const struct striker *striker;        /* NULL: none */
    void (*on_logged)(struct slice line); /* gets each line of weir's log; NULL: none */
};

extern struct kernel kernel;

void kernel_init(uint64_t seed);
void kernel_fini(void);

/* ---- for the host's side ---- */

/* Gives the connection its name. */
void conn_call(struct conn *conn, enum conn_side side, unsigned index, unsigned life);
/*
 * Dials the listening socket of that port, or Unix path (port 0). `peer` is the dialling address.
 * NULL: no listener.
 */
struct conn *conn_dial(uint16_t port, const char *path, const struct sockaddr *peer,
                       socklen_t peer_len, struct party *host, void *owner);
/*
 * Returns how many bytes were accepted: fewer than n if the window is full, and all n if nothing
 * will ever read the bytes.
 */
size_t conn_send(struct conn *conn, const char *data, size_t n);
struct slice conn_here(const struct conn *conn);
void conn_take(struct conn *conn, size_t n);
void conn_shut(struct conn *conn);
/* The host closes its side; with_reset: weir gets a reset. The pointer is invalid afterwards. */
void conn_close(struct conn *conn, bool with_reset);
/*
 * True if no more bytes arrive: the connection has ended or is broken. Bytes that have arrived may
 * be unread.
 */
bool conn_has_ended(const struct conn *conn);
/* True if no bytes are left: the end was read, or the connection is broken. */
bool conn_is_over(const struct conn *conn);
/*
 * The time at which weir had read the first `upto` bytes. Calls must come in increasing order of
 * `upto`. If weir has not read all these bytes: the time of weir's first read since the previous
 * `upto`, or 0.
 */
uint64_t conn_read_at(struct conn *conn, uint64_t upto);
void conn_note_read(struct conn *conn, size_t n);
/* Breaks the connection: weir gets `error`, the host a reset. */
void conn_break(struct conn *conn, int error);
/* Wakes both sides after a pipe has got more room. */
void conn_stir(struct conn *conn);

/* ---- for weir's side ---- */

/* What poll(2) would report for this descriptor. */
unsigned kernel_events(int fd);

/* Adds n bytes. */
void meter_add(struct meter *meter, size_t n);

#endif
