/*
 * LIMIT UPSTREAM of an operator: a row for each server of the upstream. The main thread.
 */
#ifndef WEIR_RUN_ORDER_UPSTREAM_H
#define WEIR_RUN_ORDER_UPSTREAM_H

#include "front/commands/order.h"
#include "run/census.h"

/* Carry out an ORDER_UPSTREAM. */
void order_upstream(struct order *order, const struct census *census);

#endif
