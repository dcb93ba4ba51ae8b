/*
 * The control lane: weir's own connection to one node, which learns the node's kind and the node's
 * commands.
 *
 * The lane connects, and reconnects after a loss. On each connection the lane checks whether
 * `default` needs a password, and logs in. The lane then reads INFO and COMMAND, and checks that
 * the node serves clients (PING). weir works without answers that the node denies (lack.h). The
 * lane asks for missing answers every 10 s. A node that cannot be used is retried every 10 s, too.
 * After these steps the lane probes the node once in every upstream-check (pulse.h). hiredis'
 * reader parses the replies. A control lane lives on one event loop.
 */
#ifndef WEIR_UPSTREAM_CONTROL_H
#define WEIR_UPSTREAM_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/slice.h"
#include "limit/command/command.h"
#include "net/link.h"
#include "net/loop.h"
#include "upstream/node/node.h"
#include "upstream/node/pulse.h"

struct control_ops {
    /* The connection is established; no answer has arrived yet. */
    void (*on_connected)(void *arg);
    /* The first command of this connection, HELLO, has been answered. */
    void (*on_greeted)(void *arg);
    /* The node has reported its role: node_role. */
    void (*on_role)(void *arg);
    /*
     * An attempt or a connection has ended. The control lane retries later, unless the lane is a
     * trial. `why` is valid during the call.
     */
    void (*on_failed)(void *arg, const char *why);
    /* The node's own command table; the receiver owns the reference. */
    void (*on_table)(void *arg, struct command_table *table);
    /* The node answers, but cannot be used: for now, or for ever if node->is_barred is set. */
    void (*on_rejected)(void *arg, const char *why);
    /* node->maxclients has been set. */
    void (*on_maxclients)(void *arg);
    /* The first attempt has ended, with or without success. */
    void (*on_settled)(void *arg);
    /* control_pulse has changed; the line describes the change for the log. */
    void (*on_pulse)(void *arg, enum log_level level, const char *line);
};

struct credentials {
    const char *user;     /* NULL: only a password */
    const char *password; /* NULL: none */
    const char *before;   /* the previous password, tried if `password` is refused; NULL: none */
    uint32_t number;      /* number of the password, for node->proven_number */
};

struct control;

/*
 * Open a control lane. credentials->user must outlive the control lane; the passwords are copied. A
 * trial only tests whether a server answers at this address: a trial does not log or retry.
 * control_adopt turns a trial into a regular control lane. Do not close a control lane from within
 * a callback of `ops`. Out of memory ends the process.
 */
struct control *control_open(struct loop *loop, struct node *node,
                             const struct credentials *credentials, bool is_trial,
                             const struct control_ops *ops, void *arg);
void control_adopt(struct control *control);

/* A command from the owner. */
struct control_question {
    /* The whole reply, valid during the call. The command was sent at asked_ns. */
    void (*on_answer)(void *arg, struct node *node, struct slice frame, uint64_t asked_ns);
    void *arg;
    const char *name; /* of the command, for the log */
};

/*
 * Send a command of `n` words. on_answer follows unless the connection is lost first. False: the
 * connection is not up, performs steps of its own, or has too many unanswered commands. False also
 * if a command with the same on_answer is still unanswered.
 */
bool control_ask(struct control *control, const struct slice *words, size_t n,
                 const struct control_question *question);

/* on_role follows, unless the node does not report its role or the connection is not up. */
void control_ask_role(struct control *control);

/*
 * Use the passwords of `credentials` from now on; the passwords are copied. A connection that is up
 * logs in again with a new password, to learn whether the node accepts that password.
 */
void control_set_password(struct control *control, const struct credentials *credentials);

/* The version of the library that parses the replies. */
const char *control_reader_version(void);

/*
 * True if the connection has completed its steps and is not lost. Answers may be missing:
 * node->lacks.
 */
bool control_is_up(const struct control *control);

/*
 * Why a node that answers cannot be used. "": the node can be used, or does not answer. The text is
 * valid until the next iteration.
 */
const char *control_why(const struct control *control);

/* The state of the probe. PULSE_WELL if the node is not probed: no upstream-check, or not up. */
enum pulse_state control_pulse(const struct control *control);

/* How long the probe in flight has been unanswered; 0: no probe is in flight. */
uint64_t control_silence_ns(const struct control *control, uint64_t now_ns);

/*
 * True if the control lane was up before, and the node refused or closed the connection at the last
 * attempt. The node is up, but rejects weir's own user, or rejects more connections.
 */
bool control_is_turned_away(const struct control *control);

/* Closes asynchronously, and frees the control lane. No callback follows. */
void control_close(struct control *control);

#endif
