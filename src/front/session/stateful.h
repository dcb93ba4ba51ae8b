/*
 * Stateful commands: the functions that weir calls when a command is sent, is queued in MULTI, or
 * is answered.
 *
 * stateful.c has one row for each effect (enum effect). weir does not follow how queued commands
 * change a session. Instead, a row names the pin that the client gets when the command is queued.
 */
#ifndef WEIR_FRONT_STATEFUL_H
#define WEIR_FRONT_STATEFUL_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "resp/glimpse.h"
#include "upstream/lane/lane.h"

/* A request that is being sent on `lane`. `call` is NULL until the call is recorded. */
struct sending {
    struct client *client;
    struct lane *lane;
    const struct request *request;
    struct call *call;
};

/* The reply to a call. */
struct answer {
    struct client *client;
    const struct call *call;
    const struct glimpse *reply;
    bool is_error;
};

/* Any function may be NULL. A function that returns bool returns false if out of memory. */
struct stateful {
    /* outside MULTI, before the call: allocates what the request needs */
    bool (*prepare)(const struct sending *s);
    void (*sent)(const struct sending *s);    /* outside MULTI, once the call is recorded */
    void (*answered)(const struct answer *a); /* once a call with CALL_LOOK was answered */
    void (*queued)(const struct sending *s);  /* inside MULTI, once the call is recorded */
    /* enum pin that the client gets inside MULTI; 0: none */
    uint32_t pin;
    /* sends the bytes; NULL: the bytes are sent as they came */
    bool (*send)(const struct sending *s);
};

const struct stateful *stateful_row(enum effect effect);

/*
 * For EFFECT_ADMIT: true if the request may change the user or rights of connections that do not
 * log in.
 */
bool stateful_admits(const struct request *request);

/* Called when a call with CALL_LOOK was answered. */
void stateful_answered(struct client *client, const struct call *call, const struct glimpse *reply);

/*
 * Sends CLIENT TRACKING. An id of a connection that belongs to another application is replaced by
 * an id that no connection has. False: out of memory.
 */
__attribute__((warn_unused_result)) bool stateful_send_tracking(struct client *client,
                                                                struct lane *lane,
                                                                const struct request *request);

#endif
