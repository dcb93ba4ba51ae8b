/*
 * Replacing a running weir by another process, maybe of another version, without refusing a connection: the old process
 * starts the new one with all its listening sockets, so that none of them is ever closed, and drains once it serves.
 *
 * The two share a socket pair. The new process writes there why it cannot serve (run/last_words.h), or a byte when it
 * does. The old one then tells the service manager
 * which process is the main one, and closes its end: from then on the new process notifies the service manager. If the
 * new process ends before it has served, the old one goes on as if nothing had happened.
 *
 * A new process that is not ready, as its upstream is away, offers to serve. The old one lets it once it is not ready
 * either.
 */
#ifndef WEIR_RUN_UPGRADE_H
#define WEIR_RUN_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "net/loop.h"
#include "run/last_words.h"

/* In the environment of the new process: the old one's pid, and a letter for each socket that is handed over. */
#define UPGRADE_PID "WEIR_UPGRADE_PID"
#define UPGRADE_SOCKETS "WEIR_UPGRADE_SOCKETS"
#define UPGRADE_ORDERS "WEIR_UPGRADE_ORDERS" /* the descriptor of a file with what operators have ordered */
#define UPGRADE_OFFERS "WEIR_UPGRADE_OFFERS" /* the old one's pid, if it answers UPGRADE_OFFER */

#define UPGRADE_NODES "WEIR_UPGRADE_NODES" /* as controls_list_nodes has it */

/* What the new process writes when it listens and is not ready; and the old one's answer once it is not ready either. */
#define UPGRADE_OFFER '\x03'
#define UPGRADE_GO 'g'

/* What the new process writes when it serves; anything else is an older weir, which knows nothing of orders. */
#define UPGRADE_HAS_ORDERS 'o'

/* How this process was started. */
struct program {
    const char *path; /* of the program file, which may have been replaced since */
    char **argv;
};

#define UPGRADE_OWN 'o'     /* a socket that weir made */
#define UPGRADE_SYSTEMD 's' /* a socket that systemd made */

/* A listening socket to hand over. */
struct heirloom {
    int fd;
    bool is_systemds;
};

enum upgrade_state { UPGRADE_NONE, UPGRADE_RUNS, UPGRADE_DONE, UPGRADE_CALLED_OFF };

struct upgrade {
    const struct program *program;
    void (*on_served)(void *arg, int pid);
    void *arg;
    char *orders;    /* what the new process has been given of them; heap; NULL: nothing */
    bool has_orders; /* it has read them */
    /* private, zero before */
    enum upgrade_state state;
    bool has_offer; /* the new process is not ready, and would serve all the same */
    unsigned open;  /* handles that are not closed yet */
    uv_process_t process;
    uv_pipe_t answer;
    char room[256]; /* of the answer, as it comes */
    struct last_words words;
    char reason[LAST_WORDS_MAX]; /* why the new process does not serve, as far as it has told: its first error */
};

/*
 * Start the new process with these n sockets, `orders` (heap, taken over; NULL: none) and `nodes` (UPGRADE_NODES);
 * on_served may follow. Errors are logged; so is an upgrade already running.
 */
void upgrade_start(struct upgrade *upgrade, struct loop *loop, const struct heirloom *sockets, size_t n, char *orders,
                   const char *nodes);

/* After on_served: this process no longer notifies the service manager; the new one may. */
void upgrade_let_go(struct upgrade *upgrade);

/* This process is not ready: the new one may serve, if it has offered to. Any number of times. */
void upgrade_let_serve(struct upgrade *upgrade);

/*
 * This process is told to stop: the new one ends too, unless it serves already. It has the same listening sockets,
 * which are about to refuse whoever connects.
 */
void upgrade_call_off(struct upgrade *upgrade);

/* Ends the new process if it does not serve yet. Asynchronous, as the loop is closed. */
void upgrade_close(struct upgrade *upgrade);

/* ---- the new process' side ---- */

struct succession {
    int fd;          /* the socket to the old process; -1: there is none */
    bool has_orders; /* it has read those of the old process */
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
