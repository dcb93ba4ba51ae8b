/*
 * The heartbeat of a connection that is up: asks its node again and again whether it answers (pulse.h), looks from
 * elsewhere when it does not (heartbeat.h), and puts into words what has changed.
 *
 * Embedded in the connection's owner (control.h), which has the timer, writes the questions and hands on the answers.
 */
#ifndef WEIR_UPSTREAM_HEARTBEAT_H
#define WEIR_UPSTREAM_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/slice.h"
#include "net/loop.h"
#include "upstream/node/node.h"
#include "upstream/node/pulse.h"

struct second_look;

struct heartbeat_ops {
    /* Send this command, a word. */
    void (*on_ask)(void *arg, struct slice question);
    /* The pulse's state has changed; the line says how, for people. */
    void (*on_news)(void *arg, enum log_level level, const char *line);
};

struct heartbeat {
    struct loop *loop;
    struct node *node;
    const struct heartbeat_ops *ops;
    void *arg;
    struct pulse pulse;
    struct second_look *look; /* NULL: none is under way */
    bool has_looked;          /* it has found the node there ... */
    bool is_dead;             /* ... and that another connection is answered what this one is not */
    bool may_not_ping;        /* its user has no right to; its owner has asked before the first period */
    bool is_mute;             /* the last attempt was taken, and answered nothing */
};

/* The loop, the node and ops live longer. */
void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct node *node, const struct heartbeat_ops *ops,
                    void *arg);

/*
 * A period is over. The credentials are for a look from elsewhere. False: the node answers others, so that the
 * connection must be dead.
 */
__attribute__((warn_unused_result)) bool heartbeat_tick(struct heartbeat *heartbeat, uint64_t now_ns, const char *user,
                                                        const char *password);

/* Its reply has come. */
void heartbeat_answer(struct heartbeat *heartbeat, struct slice frame, uint64_t now_ns);

/* An attempt to connect was taken, and nothing was answered; or something has been. */
void heartbeat_note_mute(struct heartbeat *heartbeat, bool is_mute);

/* The connection is lost or closed. */
void heartbeat_end(struct heartbeat *heartbeat);

#endif
