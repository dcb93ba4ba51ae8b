/*
 * The simulated system: descriptors, listening sockets, and connections between weir and the parties around it.
 *
 * Weir's side of a connection is a descriptor, used by the system calls in syscalls.c. The other side, here called the
 * host's, is a struct conn: a client dials one, the Redis is dialled. What goes wrong is drawn from the run's odds.
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

/* In millionths, but where a unit is named. */
struct odds {
    uint32_t cut_read, cut_write; /* a call takes only a part */
    uint32_t again;               /* a call would block although it need not */
    uint32_t interrupted;         /* a call is to be made again */
    uint32_t broken;              /* a call tells that the connection is lost: see system_errors */
    uint32_t accept_short, accept_aborted;
    uint32_t socket_short;
    uint32_t watch_short;  /* the system has no memory to watch one more */
    uint32_t unreachable;  /* a connection to Redis fails at once */
    uint32_t timed_out;    /* or after a while */
    uint32_t refuse, drop; /* a connection to Redis is refused, or never answered */
    uint64_t delay_ns;     /* of each piece, at most */
    size_t window;         /* bytes on their way in each direction */
    uint32_t fds;          /* descriptors there are */
};

/* Whose a connection is: that of client `index`, its `life`th; or the `index`th that weir has opened to Redis. */
enum conn_side { SIDE_NOBODY, SIDE_CLIENT, SIDE_LANE, SIDE_OPERATOR };
struct conn_name {
    enum conn_side side;
    unsigned index, life;
};

enum conn_state { CONN_CONNECTING, CONN_OPEN, CONN_FAILED };

/* Weir had read so many bytes then. */
struct moment {
    uint64_t upto, at_ns;
};

struct conn {
    unsigned number; /* of the connections of this run */
    struct conn_name name;
    struct pipe to_weir, to_host;
    enum conn_state state; /* as weir sees it, who has dialled */
    int error;             /* weir is to be told, once */
    int fd;                /* weir's; -1: not accepted yet, or closed */
    bool weir_has_closed, weir_has_shut, host_has_closed;
    bool is_unix;
    unsigned uid;                 /* of who dialled a unix socket */
    struct sockaddr_storage peer; /* the host's address */
    socklen_t peer_len;
    struct party *host;     /* woken when something has come, or there is space again; NULL: it has closed */
    void *owner;            /* the host's */
    struct bell bell;       /* connecting */
    struct bell *left;      /* rung when both sides have closed; NULL: nobody wants to know */
    uint64_t read_by_weir;  /* bytes, ever */
    struct moment *moments; /* when they were read, oldest first: [first, last) of room; the host takes them away */
    size_t first_moment, last_moment, moment_room;
    bool host_wants_space;
    bool counts_reads; /* the host wants to know when weir reads: moments */
};

/* Bytes, and when the last of them moved. */
struct meter {
    uint64_t bytes, last_ns, last_step;
};

/* Lets things go wrong on single connections: it has the marks of their pipes. */
struct striker {
    void (*on_named)(struct conn *conn);
    void (*on_marked)(struct conn *conn, bool to_weir); /* the mark it has set was reached */
    void (*on_gone)(const struct conn *conn);           /* the pointer is invalid afterwards */
};

struct kernel {
    struct odds odds;
    struct random chance;
    unsigned n_open;    /* descriptors */
    unsigned n_conns;   /* ever */
    unsigned n_live;    /* now */
    unsigned n_lanes;   /* ever */
    struct meter heard; /* by weir, of clients */
    struct meter asked; /* by weir, of Redis */
    int64_t wall_ns;    /* the date is so much off what it would be */
    /* Weir wants a connection to an upstream: sets host and owner. False: refused. */
    bool (*on_dialled)(struct conn *conn);
    bool (*is_silent)(const struct conn *conn); /* this one is never answered; NULL: each is */
    const struct striker *striker;              /* NULL: nobody */
    void (*on_logged)(struct slice line);       /* what weir writes to its log; NULL: nobody reads it */
};

extern struct kernel kernel;

void kernel_init(uint64_t seed);
void kernel_fini(void);

/* ---- for the host's side ---- */

/* To the listening socket of that port, or unix path (port 0); NULL: nobody listens. `peer` is who dials: an address. */
/* It has a name from now on. */
void conn_call(struct conn *conn, enum conn_side side, unsigned index, unsigned life);
struct conn *conn_dial(uint16_t port, const char *path, const struct sockaddr *peer, socklen_t peer_len,
                       struct party *host, void *owner);
/* Returns how many were taken: fewer than n when the window is full, and all when nobody will ever read them. */
size_t conn_send(struct conn *conn, const char *data, size_t n);
struct slice conn_here(const struct conn *conn);
void conn_take(struct conn *conn, size_t n);
void conn_shut(struct conn *conn);
/* The host is done with it; with a reset weir is told so. The pointer is invalid afterwards. */
void conn_close(struct conn *conn, bool with_reset);
/* True if no more bytes arrive: the connection has ended or is broken. Those that are here may be unread. */
bool conn_has_ended(const struct conn *conn);
/* Nothing more will come: the end was read, or the connection is broken. */
bool conn_is_over(const struct conn *conn);
/*
 * When weir had read the first `upto` bytes, which must have been asked for in order. It has not, and something of them:
 * when it had read as far as was asked for before, or more; 0: nothing.
 */
uint64_t conn_read_at(struct conn *conn, uint64_t upto);
void conn_note_read(struct conn *conn, size_t n);
/* Weir is told this of it, the host that it was reset. */
void conn_break(struct conn *conn, int error);
/* Somebody has made a pipe of it wider: both sides may go on. */
void conn_stir(struct conn *conn);

/* ---- for weir's side ---- */

/* What poll(2) would say of it. */
unsigned kernel_events(int fd);

/* So many bytes more. */
void meter_add(struct meter *meter, size_t n);

#endif
