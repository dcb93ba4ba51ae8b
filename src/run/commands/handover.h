/*
 * What operators have ordered, as text from one process to the one that replaces it (run/upgrade.h): a line for each
 * order that is in force and in no file. Times are those of the monotonic clock, which both have.
 *
 * The main thread.
 */
#ifndef WEIR_RUN_HANDOVER_H
#define WEIR_RUN_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "front/commands/order.h"
#include "limit/blocks.h"
#include "limit/figures/journal.h"
#include "quota/named.h"
#include "run/config/config_file.h"
#include "run/commands/set_lines.h"

/* Where orders come from. */
struct handover {
    const struct config_file *running, *loaded; /* their difference has been SET */
    const struct set_lines *lines;
    const struct named *named;
    const struct shared_set *blocks;
};

/* NUL-terminated; heap. Only its first line where there are none. NULL: out of memory. */
char *handover_write(const struct handover *from);

/*
 * Have the orders carried out, all in one call, which sets their errors. Those that are not are logged, and so is how
 * many are. False: the text is of another kind.
 */
bool handover_read(const char *text, struct journal *journal,
                   void (*carry_out)(void *arg, struct order *const *orders, size_t n), void *arg);

/* Log, one by one, the orders of `text` that `other` (NULL: nothing) does not have: what becomes of them, and why. */
void handover_log(const char *text, const char *other, const char *what, const char *why, struct journal *journal);

#endif
