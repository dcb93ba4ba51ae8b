/*
 * The control lane: weir's own connection to one node, on which it learns what that is and which commands it has.
 *
 * Connects, and connects again whenever it is lost; each time it asks whether `default` needs a password, logs in,
 * reads INFO and COMMAND, and asks whether the node serves (PING). What weir may not ask it goes without (lack.h), and
 * asks again every 10 s; so it does of a node that it cannot serve. Then it asks once in every upstream-check whether
 * the node still answers (pulse.h). Its replies are read with hiredis' reader. Lives on one loop.
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
    /* It is connected, and nothing has been answered. */
    void (*on_connected)(void *arg);
    /* The first question of this connection, HELLO, has been answered. */
    void (*on_greeted)(void *arg);
    /* The node has said what it is: node_role. */
    void (*on_role)(void *arg);
    /* The attempt or the connection is over; it is tried again later, if it is no trial. `why` is good during the call. */
    void (*on_failed)(void *arg, const char *why);
    /* The node's own command table; the receiver owns the reference. */
    void (*on_table)(void *arg, struct command_table *table);
    /* The node answers, and cannot be served: for now, or as node->is_barred says, as it is none for weir. */
    void (*on_rejected)(void *arg, const char *why);
    /* node->maxclients has been set. */
    void (*on_maxclients)(void *arg);
    /* The first attempt is over, however it went. */
    void (*on_settled)(void *arg);
    /* control_pulse has changed; the line says how, for people. */
    void (*on_pulse)(void *arg, enum log_level level, const char *line);
};

struct credentials {
    const char *user;     /* NULL: only a password */
    const char *password; /* NULL: none */
    const char *before;   /* tried where that is refused; NULL: none */
    uint32_t number;      /* of the password, for node->proven_number */
};

struct control;

/*
 * The user must outlive it; the passwords are copied. A trial is for finding out whether a server answers at this
 * address:
 * the log is told nothing, and what has failed is not tried again. control_adopt: it is no trial any more. No control
 * is to be closed from within a call of `ops`. Out of memory ends the process.
 */
struct control *control_open(struct loop *loop, struct node *node, const struct credentials *credentials, bool is_trial,
                             const struct control_ops *ops, void *arg);
void control_adopt(struct control *control);

/* A question of its owner's. */
struct control_question {
    /* The whole reply; good during the call. It was asked at asked_ns. */
    void (*on_answer)(void *arg, struct node *node, struct slice frame, uint64_t asked_ns);
    void *arg;
    const char *name; /* of what is asked, for people */
};

/*
 * Ask this command: told unless the connection is lost before. False: the connection is not up, or takes steps of its
 * own, or a question with this on_answer has no answer yet.
 */
bool control_ask(struct control *control, const struct slice *words, size_t n, const struct control_question *question);

/* on_role follows, unless the node does not tell or the connection is not up. */
void control_ask_role(struct control *control);

/*
 * Log in with these passwords from now on; copied. A connection that is up logs in again with a new one, so that it is
 * known whether the node accepts that password.
 */
void control_set_password(struct control *control, const struct credentials *credentials);

/* Of the library that reads the replies. */
const char *control_reader_version(void);

/* True if it has greeted its node, and not lost it since. The node may have kept answers from weir: node->lacks. */
bool control_is_up(const struct control *control);

/* Why its node, which answers, cannot be served; "": it can, or does not answer. Good until the loop goes on. */
const char *control_why(const struct control *control);

/* Does the node answer? PULSE_WELL where it is not asked: no upstream-check, or not up. */
enum pulse_state control_pulse(const struct control *control);

/* How long the question that is under way has had no answer; 0: none is. */
uint64_t control_silence_ns(const struct control *control, uint64_t now_ns);

/*
 * Was it up before, and has its node, when it was last tried, refused or closed it? Then the node is there, though not
 * for weir's own user, or not for one connection more.
 */
bool control_is_turned_away(const struct control *control);

/* Asynchronous; frees itself. No callback comes after it. */
void control_close(struct control *control);

#endif
