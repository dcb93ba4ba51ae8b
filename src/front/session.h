/*
 * Who a client is: the user and the name it has given, the policy and the subject that follow from them.
 *
 * Redis judges AUTH, HELLO and CLIENT SETNAME; what they ask for is noted when they are sent and holds once they have
 * been answered well.
 */
#ifndef WEIR_FRONT_SESSION_H
#define WEIR_FRONT_SESSION_H

#include "base/slice.h"
#include "front/client.h"
#include "limit/command.h"
#include "resp/glimpse.h"

/* Work out policy and subject from what is known now. */
void session_identify(struct client *client);

/* A whole request with this effect is about to be sent. */
void session_note(struct client *client, enum effect effect, struct slice request);

/* It has been answered. */
void session_answered(struct client *client, enum effect effect, const struct glimpse *reply);

/* The client for the log: its address, and its user if it has one ("10.1.2.3:4711 user:alice"). */
#define SESSION_TEXT 512
void session_print(const struct client *client, char *out);

void session_free(struct client *client);

#endif
