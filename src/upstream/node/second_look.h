/*
 * Looks at a node from a new connection when the one that is there gets no answer: does it hang, does it hold commands
 * back, or is it that connection that is dead?
 *
 * It asks two things. ECHO without its argument is refused before Redis looks whether it is paused, or who asks; PING,
 * after logging in, is answered only where commands run. One look is one connection; lives on one loop.
 */
#ifndef WEIR_UPSTREAM_SECOND_LOOK_H
#define WEIR_UPSTREAM_SECOND_LOOK_H

#include "net/loop.h"
#include "upstream/node/node.h"

struct second_look_ops {
    /* Something has been answered: the node does not hang. */
    void (*on_there)(void *arg);
    /* PING has been, too: it runs commands of others. */
    void (*on_running)(void *arg);
    /* The look is over, and frees itself. Follows unless second_look_close was called. */
    void (*on_over)(void *arg);
};

struct second_look;

/*
 * Begin; it goes on until all has been answered or the connection ends. `user` and `password` as in struct credentials
 * (control.h), for the time of the call. NULL: no memory, or no connection.
 */
struct second_look *second_look_open(struct loop *loop, struct node *node, const char *user, const char *password,
                                     const struct second_look_ops *ops, void *arg);

/* Asynchronous; frees itself. No callback comes after it. Safe on NULL. */
void second_look_close(struct second_look *look);

#endif
