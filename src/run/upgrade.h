/*
 * Replaces this process by another weir, maybe of another version, without refusing a connection.
 *
 * Starts the successor with all listening sockets, so that none is ever closed, and with the admin
 * commands in force. Once the successor serves (run/succession.h) this process tells the service
 * manager the new main process, and drains. If the successor ends before it has served, this
 * process goes on unchanged.
 *
 * A successor that is not ready, because its upstream is down, offers to serve. This process
 * accepts the offer once the upstream is down for this process, too. Main thread.
 */
#ifndef WEIR_RUN_UPGRADE_H
#define WEIR_RUN_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "net/loop.h"
#include "run/succession.h"

struct config_manager;
struct journal;
struct listening;
struct reporter;

/* How this process was started. */
struct program {
    const char *path; /* of the program file, which may have been replaced since */
    char **argv;
};

enum upgrade_state { UPGRADE_NONE, UPGRADE_RUNS, UPGRADE_DONE, UPGRADE_CALLED_OFF };

struct upgrade {
    const struct program *program;
    struct listening *listening;
    struct reporter *reporter;
    struct config_manager *manager;
    struct journal *journal;
    void (*on_replaced)(void *arg); /* the successor serves: this process must stop */
    void *arg;
    /* private, zero before */
    enum upgrade_state state;
    bool has_offer;          /* the successor is not ready, and offers to serve */
    bool has_admin_commands; /* the successor has read the admin commands */
    char *admin_commands;    /* the admin commands given to the successor; heap; NULL: none */
    unsigned open;           /* handles that are not closed yet */
    uv_process_t process;
    uv_pipe_t answer;
    char room[256]; /* bytes just read from the successor */
    char mark;      /* mark of the line that is being read; 0: no line */
    size_t len;
    char line[UPGRADE_LINE_MAX];
    char reason[UPGRADE_LINE_MAX]; /* the successor's first error */
};

/*
 * Starts the successor, with the nodes that this process knows (controls_list_nodes); on_replaced
 * may follow. Errors are logged. While an upgrade is under way, a call only writes to the log.
 */
void upgrade_start(struct upgrade *upgrade, struct loop *loop, const char *nodes);

/*
 * Lets the successor serve, if the successor has offered to serve. To be called while this process
 * is not ready, any number of times.
 */
void upgrade_let_serve(struct upgrade *upgrade);

/*
 * Ends the successor, unless it serves already, because this process is told to stop. The successor
 * has the same listening sockets, which are about to refuse new connections.
 */
void upgrade_call_off(struct upgrade *upgrade);

/*
 * Ends the successor if it does not serve yet. Asynchronous.
 */
void upgrade_close(struct upgrade *upgrade);

/* Frees. To be called after upgrade_close, once the loop is closed. */
void upgrade_fini(struct upgrade *upgrade);

#endif
