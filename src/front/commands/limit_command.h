/*
 * weir's own commands (LIMIT ...): permissions for all of them, and the replies to the commands
 * that weir answers at once. The main thread carries out the commands of
 * front/commands/admin_commands.h. Redis decides the commands of front/commands/decisions.h.
 */
#ifndef WEIR_FRONT_LIMIT_COMMAND_H
#define WEIR_FRONT_LIMIT_COMMAND_H

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/request.h"

/*
 * Answers `request`, or sends an admin command and lets the client wait for the result. The gate
 * has let the request pass.
 */
void limit_command_run(struct client *client, const struct request *request);

/*
 * On the admin socket: true if the request is INFO of weir's own sections (limits, clients,
 * upstream), or INFO without a section.
 */
bool limit_command_is_info(const struct client *client, const struct request *request);

/* Asks the main thread for the INFO text. The client waits for the reply. */
void limit_command_info(struct client *client, const struct request *request);

/*
 * Checks the request. Returns the length of a complete error reply in `out`, 0 if the request is
 * valid.
 */
#define OWN_ERROR_ROOM 512
size_t limit_command_check(const struct client *client, const struct request *request, char *out);

/*
 * True if the command is for operators, and the client is an operator through its user alone. Redis
 * must confirm that this user is still valid.
 */
bool limit_command_needs_proof(const struct client *client, const struct request *request);

#endif
