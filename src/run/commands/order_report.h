/*
 * Reports for operators: LIMIT LIST, TOP, BLOCKS, SUGGEST, UPSTREAM and DIFF, and INFO. The main
 * thread makes the whole reply, which a worker only sends.
 */
#ifndef WEIR_RUN_ORDER_REPORT_H
#define WEIR_RUN_ORDER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/order.h"
#include "run/stats_collector.h"

/* True if order_report makes the reply: all reports but LIMIT DIFF. */
bool order_is_report(const struct order *order);
void order_report(struct order *order, const struct stats_collector *collector, uint64_t now_ns);

/* LIMIT DIFF: makes the reply from order->differences. */
void order_report_differences(struct order *order);

#endif
