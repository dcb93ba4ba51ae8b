/*
 * LIMIT commands that the main thread or all workers carry out (front/commands/admin_command.h). A
 * worker turns the request into an admin command, and answers the client when the command returns.
 * Until then the client waits.
 */
#ifndef WEIR_FRONT_ADMIN_COMMANDS_H
#define WEIR_FRONT_ADMIN_COMMANDS_H

#include "front/client/client.h"
#include "front/commands/limit_words.h"
#include "front/commands/admin_command.h"
#include "resp/build.h"

/*
 * Makes an admin command of the request's words, sends the command to the main thread, and sets
 * extra.admin_command. Out of memory, appends an error to `out` instead.
 */
void admin_commands_give(struct client *client, enum admin_kind kind,
                         const struct limit_words *words, struct build *out);

/*
 * Sends a report command to the main thread: ADMIN_LIST of limits that match the pattern,
 * ADMIN_TOP, or ADMIN_BLOCKS. Out of memory, appends an error to `out` instead.
 */
void admin_commands_give_report(struct client *client, enum admin_kind kind,
                                const struct report_wanted *wanted, struct slice pattern,
                                struct build *out);

/*
 * Sends LIMIT SUGGEST, with valid words, to the main thread. Out of memory, appends an error to
 * `out` instead.
 */
void admin_commands_give_suggest(struct client *client, const struct limit_words *words,
                                 const struct limit_suggest *found, struct build *out);

/*
 * Answers the client of a finished admin command, if the client is still open. The function takes
 * ownership of the command.
 */
void front_admin_command_done(struct front *front, struct admin_command *admin_command);

/* most rows of LIMIT CLIENTS (chosen); further clients are only counted */
#define ROUND_ROWS_MAX 1000

/*
 * Does some of this worker's part of LIMIT CLIENTS or LIMIT KICK, in each iteration of the loop.
 * True if the part is done. At any time at most one LIMIT CLIENTS or LIMIT KICK is under way, at
 * one worker. Rows of two workers may show different moments.
 */
bool front_round_some(struct front *front, struct admin_command *admin_command);

#endif
