/*
 * Clients that count, in runs with several servers: each has a key, adds to it, and reads it. What it is told shows
 * whether each request was carried out once, in order, and whether the reply is its own.
 *
 * Laws. In every run: no request is carried out twice, none that was answered is lost, none that was refused is carried
 * out, replies come in order, and they are one's own. Where nothing goes wrong around weir (run.plan.is_pure): no
 * error, and an idle client stays connected. If no server has gone without a word, every client stays connected.
 */
#ifndef WEIR_SIM_COUNTERS_H
#define WEIR_SIM_COUNTERS_H

#include <stdbool.h>

void counters_start(void);
bool counters_are_waiting(void);
void counters_leave(void);
void counters_stop(void);

#endif
