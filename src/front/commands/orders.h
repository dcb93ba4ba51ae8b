/*
 * LIMIT commands that the main thread or every worker carries out (front/commands/order.h): made
 * into orders, and answered when these come back. Until then the client is held.
 */
#ifndef WEIR_FRONT_ORDERS_H
#define WEIR_FRONT_ORDERS_H

#include "front/client/client.h"
#include "front/commands/limit_words.h"
#include "front/commands/order.h"
#include "resp/build.h"

/* Give an order made of the command's words; extra.order is set. Out of memory `out` is the error reply instead. */
void orders_give(struct client *client, enum order_kind kind, const struct limit_words *words, struct build *out);

/* The same for a report: ORDER_LIST, of limits that fit the pattern, ORDER_TOP, ORDER_BLOCKS. */
void orders_give_report(struct client *client, enum order_kind kind, const struct report_wanted *wanted,
                        struct slice pattern, struct build *out);

/* The same for LIMIT SUGGEST: its words are good. */
void orders_give_suggest(struct client *client, const struct limit_words *words, const struct limit_suggest *found,
                         struct build *out);

/*
 * The order has been carried out, or not: its client is answered and goes on, if it is still there. Takes over the
 * order.
 */
void front_order_done(struct front *front, struct order *order);

#define ROUND_ROWS_MAX 1000 /* clients that LIMIT CLIENTS tells of; of the others how many there are */

/*
 * Does some of this worker's part of LIMIT CLIENTS or LIMIT KICK, in each iteration of the loop.
 * True: that was the rest. One order at a time: it goes round, from one worker to the next. What is
 * told of two workers is not of one moment.
 */
bool front_round_some(struct front *front, struct order *order);

#endif
