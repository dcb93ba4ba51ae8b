/*
 * The operator: a client on weir's admin socket that runs every command that shows something, and
 * changes limits while they are in force.
 */
#ifndef WEIR_SIM_OPERATOR_H
#define WEIR_SIM_OPERATOR_H

#include <stdbool.h>
#include <stdint.h>

void operator_start(void);
void operator_hang_up(void); /* reconnects later */
void operator_leave(void);   /* disconnects for good */
void operator_rest(uint64_t until_ns);
void operator_stop(void);

/* True if a reply is outstanding. */
bool operator_is_waiting(void);

/* The operator's connection; NULL: none. */
struct conn *operator_conn(void);

#endif
