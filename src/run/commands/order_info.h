/*
 * INFO of an operator, which tells of the whole process. The main thread.
 */
#ifndef WEIR_RUN_ORDER_INFO_H
#define WEIR_RUN_ORDER_INFO_H

#include "front/commands/order.h"
#include "run/census.h"

/* Carry out an ORDER_INFO. */
void order_info(struct order *order, const struct census *census);

#endif
