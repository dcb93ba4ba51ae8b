/*
 * Stateful commands: what each does when it is sent, when it is queued in MULTI, and when it is answered.
 *
 * One row for each effect, in stateful.c. What a transaction does to a session is not followed: a row names the pin
 * that its command takes inside MULTI.
 */
#ifndef WEIR_FRONT_STATEFUL_H
#define WEIR_FRONT_STATEFUL_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "resp/glimpse.h"
#include "upstream/lane/lane.h"

/* A request that is being sent on `lane`; `call` is NULL until it is noted. */
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

/* Any function may be NULL. Those that return bool: false means out of memory. */
struct stateful {
    bool (*prepare)(const struct sending *s); /* outside MULTI, before its call: memory for what it asks for */
    void (*sent)(const struct sending *s);    /* outside MULTI: its call is noted */
    void (*answered)(const struct answer *a); /* of a call with CALL_LOOK */
    void (*queued)(const struct sending *s);  /* inside MULTI: its call is noted */
    uint32_t pin;                             /* enum pin that it takes inside MULTI; 0: none */
    bool (*send)(const struct sending *s);    /* its bytes; NULL: as they came */
};

const struct stateful *stateful_row(enum effect effect);

/* Of EFFECT_ADMIT: true if the request may change which user connections that do not log in are. */
bool stateful_admits(const struct request *request);

/* A call with CALL_LOOK has been answered. */
void stateful_answered(struct client *client, const struct call *call, const struct glimpse *reply);

/*
 * Sends CLIENT TRACKING: an id of a connection that is not of the client's own application becomes
 * one that no connection has. False: out of memory.
 */
__attribute__((warn_unused_result)) bool stateful_send_tracking(struct client *client, struct lane *lane,
                                                                const struct request *request);

#endif
