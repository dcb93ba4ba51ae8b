/*
 * The operator: somebody on weir's admin socket, who looks at everything there is to see and changes limits while they bind.
 */
#ifndef WEIR_SIM_OPERATOR_H
#define WEIR_SIM_OPERATOR_H

#include <stdbool.h>
#include <stdint.h>

void operator_start(void);
void operator_hang_up(void); /* it comes again */
void operator_leave(void);   /* for good */
void operator_rest(uint64_t until_ns);
void operator_stop(void);

/* For an answer. */
bool operator_is_waiting(void);

/* Its connection; NULL: it has none. */
struct conn *operator_conn(void);

#endif
