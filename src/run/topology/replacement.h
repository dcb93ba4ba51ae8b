/*
 * How this process is replaced: it starts another with its sockets and with what operators have ordered
 * (run/upgrade.h), and leaves the rest to it once that one serves. The main thread.
 */
#ifndef WEIR_RUN_REPLACEMENT_H
#define WEIR_RUN_REPLACEMENT_H

#include "limit/figures/journal.h"
#include "net/loop.h"
#include "run/commands/governor.h"
#include "run/listening.h"
#include "run/reporter.h"
#include "run/upgrade.h"

struct replacement {
    const struct program *program;
    struct listening *listening;
    struct reporter *reporter;
    struct governor *governor;
    struct journal *journal;
    void (*on_replaced)(void *arg); /* the other serves: this process is to stop */
    void *arg;
    /* private, zero before */
    struct upgrade upgrade;
};

/* Start the other process, with the nodes that this one knows (controls_list_nodes); on_replaced may follow. Errors are logged; so is that one runs already. */
void replacement_start(struct replacement *replacement, struct loop *loop, const char *nodes);

/* This process is not ready: upgrade_let_serve. */
void replacement_let_serve(struct replacement *replacement);

/* This process stops for another reason: upgrade_call_off. */
void replacement_call_off(struct replacement *replacement);

/* Asynchronous, as the loop is closed. */
void replacement_close(struct replacement *replacement);

/* Once the loop is closed. */
void replacement_fini(struct replacement *replacement);

#endif
