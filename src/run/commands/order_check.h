/*
 * Orders that could have no effect: a LIMIT SET of a command that nobody knows, or for a subject that another policy
 * binds. The main thread.
 */
#ifndef WEIR_RUN_ORDER_CHECK_H
#define WEIR_RUN_ORDER_CHECK_H

#include "front/commands/order.h"
#include "limit/command/command.h"
#include "limit/policy/identity.h"
#include "limit/policy/policy.h"
#include "run/config/config_edit.h"

/*
 * Is the order about a command or category that `table` does not know? Returns NULL, or an error (heap) that names the
 * nearest one. `name` is the order's line.
 */
__attribute__((warn_unused_result)) char *order_check_class(const struct line_name *name,
                                                            const struct command_table *table);

/*
 * Can what is SET for one subject, or for a time, be so, and does the policy bind the subject? Returns NULL, or an
 * error (heap); NULL also where it may.
 */
__attribute__((warn_unused_result)) char *order_check_whom(const struct order *order, const struct line_name *name,
                                                           const struct identity *identity,
                                                           const struct policies *policies);

#endif
