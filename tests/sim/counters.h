/*
 * Clients that count, in runs with several servers. Each client increments a key of its own and
 * reads it. The replies show whether each request was carried out once, in order, and whether the
 * reply belongs to the request.
 *
 * Laws in every run: no request is carried out twice, no answered request is lost, no refused
 * request is carried out. Replies come in order and to the client that asked. Where only servers
 * fail (run.plan.is_pure): no error, and an idle client stays connected. If no server has failed
 * silently, every client stays connected.
 */
#ifndef WEIR_SIM_COUNTERS_H
#define WEIR_SIM_COUNTERS_H

#include <stdbool.h>

void counters_start(void);
bool counters_are_waiting(void);
void counters_leave(void);
void counters_stop(void);

#endif
