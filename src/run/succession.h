/*
 * What this process takes over from the one that started it: listening sockets, of systemd
 * (sd_listen_fds(3)) or of a weir that it replaces (run/upgrade.h), so that connections that wait
 * in them are not lost; and what it tells that weir.
 *
 * The two weirs share a socket pair. The new one writes there why it cannot serve: its warnings and errors, so that the
 * reason stands in the log of the process that goes on, in that log's format, and a full pipe on stderr holds up no
 * upgrade. A line is a mark, 'e' or 'w', the text and a line end; no other byte of it is below ' '. It writes
 * UPGRADE_OFFER when it listens and is not ready, and a byte that is no mark when it serves. Main thread.
 */
#ifndef WEIR_RUN_SUCCESSION_H
#define WEIR_RUN_SUCCESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "net/link.h"
#include "net/loop.h"

/* ---- what the two agree upon ---- */

/* In the environment of the new process. */
#define UPGRADE_PID "WEIR_UPGRADE_PID"         /* the old one's pid */
#define UPGRADE_SOCKETS "WEIR_UPGRADE_SOCKETS" /* a letter for each socket that is handed over */
#define UPGRADE_ORDERS "WEIR_UPGRADE_ORDERS"   /* the descriptor of a file with what operators have ordered */
#define UPGRADE_OFFERS "WEIR_UPGRADE_OFFERS"   /* the old one's pid, if it answers UPGRADE_OFFER */
#define UPGRADE_NODES "WEIR_UPGRADE_NODES"     /* as controls_list_nodes has it */
#define UPGRADE_REASONS "WEIR_UPGRADE_REASONS" /* the old one's pid, if it reads lines */

#define UPGRADE_OWN 'o'     /* a socket that weir made */
#define UPGRADE_SYSTEMD 's' /* a socket that systemd made */

#define UPGRADE_FD 3 /* the new process' end of the socket pair */

/* What the new process writes when it listens and is not ready; and the old one's answer once it is not ready either. */
#define UPGRADE_OFFER '\x03'
#define UPGRADE_GO 'g'

/* What the new process writes when it serves; anything else is an older weir, which knows nothing of orders. */
#define UPGRADE_HAS_ORDERS 'o'

#define UPGRADE_TOLD '\x01'   /* the mark of a line that stands in no log yet */
#define UPGRADE_LOGGED '\x02' /* and of one that the new process has logged itself */
#define UPGRADE_LINE_MAX 1024 /* bytes of a line; what is beyond is cut */

/* A listening socket that is handed over. */
struct heirloom {
    int fd;
    bool is_systemds;
};

/* ---- sockets ---- */

struct inherited {
    struct found *sockets;
    size_t n;
    int predecessor;  /* the socket to the weir that this process replaces; -1: it replaces none */
    bool has_answers; /* that one answers an offer */
    char *orders;     /* what operators have ordered of it, as text (run/commands/handover.h); heap; NULL: none */
    char *nodes;      /* that it knows (controls_list_nodes); heap; NULL: it tells none */
};

/* What the environment names, whose variables are removed. NULL: something is wrong with a socket; logged. */
struct inherited *inherit_find(void);

/*
 * Take one of the sockets that are bound to this address: non-blocking, the caller closes it; -1: none left. With port
 * 0 *at is updated with the port of the first one. *is_systemds: systemd made it, and removes the file of a unix socket
 * itself.
 */
int inherit_take(struct inherited *inherited, struct endpoint *at, bool *is_systemds);

/* After all takes. False: systemd passed a socket that no address is configured for; logged. */
bool inherit_check(const struct inherited *inherited);

/* Closes what has not been taken. NULL is allowed. */
void inherit_free(struct inherited *inherited);

/* ---- what the weir before is told ---- */

/* If that one waits for it: from now on it is told what is logged with level warn or error. */
void succession_tell_reasons(void);

/* True if it is told. Before log_open lines go there instead of stderr. */
bool succession_tells_reasons(void);

struct succession {
    int fd;          /* the socket to the old process; -1: there is none */
    bool has_orders; /* this process has read those of the old one */
    bool may_serve;  /* the old process is not ready, or has gone */
    void (*on_alone)(void *arg);
    void (*on_may_serve)(void *arg);
    void *arg;
    /* private, zero before */
    uv_poll_t poll;
    bool is_waiting; /* for what the old process says, or for its end */
    bool is_serving;
    bool has_answers; /* the old process answers an offer */
};

/* This process listens and is not ready: on_may_serve follows once the old one is not ready either. */
void succession_offer(struct succession *succession, struct loop *loop);

/* Tell the old process that this one serves. on_alone follows when this one may notify the service manager. */
void succession_serve(struct succession *succession, struct loop *loop);

/* Asynchronous, as the loop is closed. Safe whatever has been done. */
void succession_close(struct succession *succession);

#endif
