/*
 * Another weir, maybe of another version, takes over without a refused connection: this process starts it with all its
 * listening sockets, so that none of them is ever closed, and drains once the new one serves.
 *
 * The two speak over one socket pair. A byte of the new process says that it serves; the end, that the old one has told
 * the service manager so, and speaks for the service no more. If the new process ends without having served, the old one
 * goes on as if nothing had happened.
 */
#ifndef WEIR_RUN_UPGRADE_H
#define WEIR_RUN_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "net/loop.h"

/* In the environment of the new process: who started it, and a letter for each socket it gets. */
#define UPGRADE_PID "WEIR_UPGRADE_PID"
#define UPGRADE_SOCKETS "WEIR_UPGRADE_SOCKETS"

/* How this process was started. */
struct program {
    const char *path; /* of the file, even if another one is there by now */
    char **argv;
};

#define UPGRADE_OWN 'o'     /* weir made it */
#define UPGRADE_SYSTEMD 's' /* systemd did */

/* A listening socket to hand over. */
struct heirloom {
    int fd;
    bool is_systemds;
};

enum upgrade_state { UPGRADE_NONE, UPGRADE_RUNS, UPGRADE_DONE };

struct upgrade {
    const struct program *program;
    void (*on_served)(void *arg, int pid);
    void *arg;
    /* the upgrade's own, zero before */
    enum upgrade_state state;
    unsigned open; /* handles that are not closed yet */
    uv_process_t process;
    uv_pipe_t answer;
};

/* Start it, with these sockets; on_served may follow. The log says what goes wrong, and when one is under way already. */
void upgrade_start(struct upgrade *upgrade, struct loop *loop, const struct heirloom *sockets, size_t n);

/* Of the new process, which serves: this one speaks for the service no more. */
void upgrade_let_go(struct upgrade *upgrade);

/* One that does not serve yet is ended. Asynchronous, as the loop is closed. */
void upgrade_close(struct upgrade *upgrade);

/* ---- the new process' side ---- */

struct succession {
    int fd; /* where the old process is answered; -1: there is none */
    void (*on_alone)(void *arg);
    void *arg;
    /* its own, zero before */
    uv_poll_t poll;
    bool is_waiting;
};

/* Tell the old process that this one serves. on_alone follows when this one speaks for the service. */
void succession_serve(struct succession *succession, struct loop *loop);

/* Asynchronous, as the loop is closed. Safe whatever has been done. */
void succession_close(struct succession *succession);

#endif
