/*
 * A draft of the running configuration, which orders change before any of it runs: the file in memory, and the lines
 * that stand over it for one subject or for a time.
 *
 * An order that cannot be carried out changes nothing in it. The main thread.
 */
#ifndef WEIR_RUN_DRAFT_H
#define WEIR_RUN_DRAFT_H

#include <stdbool.h>

#include "front/commands/order.h"
#include "run/config/config_file.h"
#include "run/commands/live_rules.h"
#include "run/commands/set_lines.h"

struct draft {
    struct config_file file;
    struct set_lines lines;
};

/* A copy of what runs. */
struct draft draft_new(const struct config_file *running, const struct set_lines *lines);
void draft_fini(struct draft *draft);

/* Is the order about what is in a draft? */
bool draft_is_for(const struct order *order);

/*
 * Carry out such an order. Returns NULL, and *told is what the log is to say of it once the draft runs (heap); or an
 * error ("ERR ...", heap). Whether the new line is a good one shows only when the draft is built.
 */
__attribute__((warn_unused_result)) char *draft_change(struct draft *draft, const struct order *order,
                                                       const struct live_rules *live, char **told);

#endif
