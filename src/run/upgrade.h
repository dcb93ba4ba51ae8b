/*
 * Replaces this weir by another process, maybe of another version, without refusing a connection:
 * starts the new one with all listening sockets, so that none of them is ever closed, and with what
 * operators have ordered. Once the new one serves (run/succession.h) this one tells the service
 * manager which process is the main one, and leaves the rest to it. If the new one ends before it
 * has served, this one goes on as if nothing had happened.
 *
 * A new process that is not ready, as its upstream is away, offers to serve. This one lets it once it is not ready
 * either. Main thread.
 */
#ifndef WEIR_RUN_UPGRADE_H
#define WEIR_RUN_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "net/loop.h"
#include "run/succession.h"

struct governor;
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
    struct governor *governor;
    struct journal *journal;
    void (*on_replaced)(void *arg); /* the other serves: this process is to stop */
    void *arg;
    /* private, zero before */
    enum upgrade_state state;
    bool has_offer;  /* the new process is not ready, and would serve all the same */
    bool has_orders; /* it has read them */
    char *orders;    /* what it has been given of them; heap; NULL: nothing */
    unsigned open;   /* handles that are not closed yet */
    uv_process_t process;
    uv_pipe_t answer;
    char room[256]; /* of the answer, as it comes */
    char mark;      /* of the line that is being read; 0: none is */
    size_t len;
    char line[UPGRADE_LINE_MAX];
    char reason[UPGRADE_LINE_MAX]; /* why the new process does not serve, as far as it has told: its first error */
};

/*
 * Start the other process, with the nodes that this one knows (controls_list_nodes); on_replaced may follow. Errors are
 * logged; so is an upgrade already running.
 */
void upgrade_start(struct upgrade *upgrade, struct loop *loop, const char *nodes);

/* This process is not ready: the new one may serve, if it has offered to. Any number of times. */
void upgrade_let_serve(struct upgrade *upgrade);

/*
 * This process is told to stop: the new one ends too, unless it serves already. It has the same listening sockets,
 * which are about to refuse new connections.
 */
void upgrade_call_off(struct upgrade *upgrade);

/* Ends the new process if it does not serve yet. Asynchronous, as the loop is closed; then upgrade_fini. */
void upgrade_close(struct upgrade *upgrade);
void upgrade_fini(struct upgrade *upgrade);

#endif
