/*
 * Stateful commands: what each does when it is sent, when it is queued in MULTI, and when it is answered.
 *
 * One row for each effect, in stateful.c. What a transaction does to a session is not followed: a row names the pin
 * that its command takes inside MULTI.
 */
#ifndef WEIR_FRONT_STATEFUL_H
#define WEIR_FRONT_STATEFUL_H

#include <stdbool.h>

#include "front/client.h"
#include "front/request.h"
#include "resp/glimpse.h"
#include "upstream/lane.h"

/* Any function may be NULL. */
struct stateful {
    /* Outside MULTI, before its call: memory for what it asks for. False: out of memory. */
    bool (*prepare)(struct client *client, struct lane *lane, const struct request *request);
    /* Outside MULTI: `call` is noted. */
    void (*sent)(struct client *client, struct lane *lane, const struct request *request, struct call *call);
    /* Its reply has come. Of calls with CALL_LOOK. */
    void (*answered)(struct client *client, const struct call *call, const struct glimpse *reply);
    /* Inside MULTI: it is queued. */
    void (*queued)(struct client *client, const struct request *request);
    uint32_t pin; /* enum pin that it takes inside MULTI; 0: none */
    /* Send its bytes; NULL: as they came. False: out of memory. */
    bool (*send)(struct client *client, struct lane *lane, const struct request *request);
};

const struct stateful *stateful_row(enum effect effect);

/* A call with CALL_LOOK has been answered. */
void stateful_answered(struct client *client, const struct call *call, const struct glimpse *reply);

#endif
