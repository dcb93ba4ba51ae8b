/*
 * The heartbeat of weir's own connection to a node. A probe is sent in each period (pulse.h). A
 * second connection is opened when the probe is not answered. Changes of state are logged.
 *
 * A struct heartbeat is embedded in the connection's owner (control.h), which has the timer, sends
 * the probes and passes on the answers.
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
    /* Send this command, one word. */
    void (*on_ask)(void *arg, struct slice question);
    /* The pulse's state has changed; the line describes the change for the log. */
    void (*on_news)(void *arg, enum log_level level, const char *line);
};

struct heartbeat {
    struct loop *loop;
    struct node *node;
    const struct heartbeat_ops *ops;
    void *arg;
    struct pulse pulse;
    struct second_look *look; /* NULL: no look is in progress */
    bool has_looked;          /* the look found the node up */
    /* PING was answered on the look's connection: the first connection is dead */
    bool is_dead;
    /* the connection's user may not PING; known before the first period */
    bool may_not_ping;
    bool is_mute; /* the last attempt to connect was accepted, but got no answer */
};

/* The loop, the node and ops must outlive the heartbeat. */
void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct node *node,
                    const struct heartbeat_ops *ops, void *arg);

/*
 * A period is over. The credentials are for a second look. False: the node answers the second
 * connection, and the first connection is dead.
 */
__attribute__((warn_unused_result)) bool heartbeat_tick(struct heartbeat *heartbeat,
                                                        uint64_t now_ns, const char *user,
                                                        const char *password);

/* The probe's reply has arrived. */
void heartbeat_answer(struct heartbeat *heartbeat, struct slice frame, uint64_t now_ns);

/*
 * Set by the owner: true if an attempt to connect was accepted but got no answer; false once
 * something is answered.
 */
void heartbeat_note_mute(struct heartbeat *heartbeat, bool is_mute);

/* The connection is lost or closed. */
void heartbeat_end(struct heartbeat *heartbeat);

#endif
