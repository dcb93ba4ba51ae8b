/*
 * LIMIT EXPLAIN from a configuration alone: what would become of a command of somebody who has sent nothing before. No
 * Redis is asked, so the commands are those that weir is built with.
 */
#ifndef WEIR_RUN_EXPLAIN_H
#define WEIR_RUN_EXPLAIN_H

#include <stddef.h>
#include <stdio.h>

#include "base/slice.h"
#include "limit/command/command.h"
#include "run/config/config.h"

enum explained { EXPLAINED_PASSES, EXPLAINED_STOPPED, EXPLAINED_NOT };

/*
 * Write to `out` what LIMIT EXPLAIN says, a line for each field, about the command in `words` (its name first; at least
 * one) and whom `subject` names: "user:gold-1", "user:gold-1,ip:10.1.2.3". EXPLAINED_STOPPED: it would be refused or
 * denied. EXPLAINED_NOT: `why` says what is wrong with the question; else it is empty, or says that nobody knows the
 * command.
 */
enum explained explain(const struct config *config, const struct command_table *table, struct slice subject,
                       const struct slice *words, size_t n_words, FILE *out, char *why, size_t why_size);

#endif
