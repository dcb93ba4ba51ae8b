/*
 * Reports for operators that are long with many limits or subjects: LIMIT LIST, TOP, BLOCKS, DIFF. The main thread
 * makes the whole reply, so that a worker has no more to do than to send it.
 */
#ifndef WEIR_RUN_ORDER_REPORT_H
#define WEIR_RUN_ORDER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "front/commands/order.h"

bool order_is_report(const struct order *order);

/* LIMIT LIST, TOP or BLOCKS, of what is so now. */
void order_report(struct order *order, const struct rules *rules, const struct front_settings *settings,
                  uint64_t now_ns);

/* LIMIT DIFF: order->differences as a reply. */
void order_report_differences(struct order *order);

#endif
