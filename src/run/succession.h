/*
 * Takes over listening sockets from the process that started this one: from systemd
 * (sd_listen_fds(3)), or from a weir that this process replaces (run/upgrade.h). Connections that
 * wait in the sockets are not lost. Also reports to the predecessor, the weir that is replaced.
 *
 * The two weirs share a socket pair. Until the successor serves, it writes its warnings and errors
 * to the pair. The predecessor logs these lines in its own log and format, and a full pipe on
 * stderr blocks no upgrade. A line is a mark, 'e' or 'w', the text and a line end; no other byte of
 * the line is below ' '. The successor writes UPGRADE_OFFER when it listens and is not ready, and a
 * byte that is no mark when it serves. Main thread.
 */
#ifndef WEIR_RUN_SUCCESSION_H
#define WEIR_RUN_SUCCESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "net/link.h"
#include "net/loop.h"

/* ---- the protocol of the two processes ---- */

/* Variables in the environment of the successor. */
#define UPGRADE_PID "WEIR_UPGRADE_PID"         /* the predecessor's pid */
#define UPGRADE_SOCKETS "WEIR_UPGRADE_SOCKETS" /* a letter for each socket that is handed over */
#define UPGRADE_ADMIN_COMMANDS                                                                     \
    "WEIR_UPGRADE_ORDERS" /* the descriptor of a file with admin commands */
/* the predecessor's pid, if it answers UPGRADE_OFFER */
#define UPGRADE_OFFERS "WEIR_UPGRADE_OFFERS"
#define UPGRADE_NODES "WEIR_UPGRADE_NODES"     /* as controls_list_nodes prints it */
#define UPGRADE_REASONS "WEIR_UPGRADE_REASONS" /* the predecessor's pid, if it reads lines */

#define UPGRADE_OWN 'o'     /* a socket that weir made */
#define UPGRADE_SYSTEMD 's' /* a socket that systemd made */

#define UPGRADE_FD 3 /* the successor's end of the socket pair */

/*
 * UPGRADE_OFFER: the successor listens and is not ready. UPGRADE_GO: the answer of a predecessor
 * that is not ready.
 */
#define UPGRADE_OFFER '\x03'
#define UPGRADE_GO 'g'

/*
 * The successor serves, and has the admin commands. Any other byte: the successor, an older weir,
 * serves without the admin commands.
 */
#define UPGRADE_HAS_ADMIN_COMMANDS 'o'

#define UPGRADE_TOLD '\x01'   /* mark of a line that is in no log yet */
#define UPGRADE_LOGGED '\x02' /* mark of a line that the successor has logged itself */
#define UPGRADE_LINE_MAX 1024 /* bytes of a line; a longer line is truncated */

/* A listening socket that is handed over. */
struct heirloom {
    int fd;
    bool is_systemds;
};

/* ---- sockets ---- */

struct inherited {
    struct found *sockets;
    size_t n;
    int predecessor;  /* the socket to the weir that this process replaces; -1: no predecessor */
    bool has_answers; /* the predecessor answers an offer */
    /* the predecessor's admin commands as text (run/commands/handover.h); heap; NULL: none */
    char *admin_commands;
    /* the nodes that the predecessor knows (controls_list_nodes); heap; NULL: unknown */
    char *nodes;
};

/*
 * Returns the sockets and texts that the environment names, and removes the variables. NULL: a
 * socket is not usable, which is logged.
 */
struct inherited *inherit_find(void);

/*
 * Takes one of the sockets bound to this address. Returns a non-blocking descriptor, which the
 * caller closes; -1: no such socket is left. With port 0 *at gets the port of the first socket.
 * *is_systemds: systemd made the socket, and removes the file of a unix socket itself.
 */
int inherit_take(struct inherited *inherited, struct endpoint *at, bool *is_systemds);

/*
 * To be called after the last inherit_take. False: systemd passed a socket that no address is
 * configured for; logged.
 */
bool inherit_check(const struct inherited *inherited);

/* Closes the sockets that have not been taken. NULL is allowed. */
void inherit_free(struct inherited *inherited);

/* ---- reports to the predecessor ---- */

/* Begins to send warnings and errors to the predecessor, if a predecessor reads these lines. */
void succession_tell_reasons(void);

/*
 * True if the predecessor gets warnings and errors. Before log_open the lines go to the predecessor
 * instead of to stderr.
 */
bool succession_tells_reasons(void);

struct succession {
    int fd;                  /* the socket to the predecessor; -1: none */
    bool has_admin_commands; /* this process has read the predecessor's admin commands */
    bool may_serve;          /* the predecessor is not ready, or has ended */
    void (*on_alone)(void *arg);
    void (*on_may_serve)(void *arg);
    void *arg;
    /* private, zero before */
    uv_poll_t poll;
    /* the socket is polled: for an answer of the predecessor, or for the end of the stream */
    bool is_waiting;
    bool is_serving;
    bool has_answers; /* the predecessor answers an offer */
};

/*
 * Reports that this process listens and is not ready. on_may_serve follows once the predecessor is
 * not ready.
 */
void succession_offer(struct succession *succession, struct loop *loop);

/*
 * Reports that this process serves. on_alone follows when this process may notify the service
 * manager.
 */
void succession_serve(struct succession *succession, struct loop *loop);

/* Asynchronous: the struct must stay until the loop is closed. Safe in every state. */
void succession_close(struct succession *succession);

#endif
