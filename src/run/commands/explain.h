/*
 * LIMIT EXPLAIN from a configuration alone: the gate's decision for a command of a subject that has
 * sent nothing before. No Redis is asked: the built-in command table is used.
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
 * Writes the reply of LIMIT EXPLAIN to `out`, a line for each field. `words`: the command, its name
 * first; at least one. `subject`: "user:gold-1", "user:gold-1,ip:10.1.2.3".
 *
 * EXPLAINED_STOPPED: the command would be refused or denied. EXPLAINED_NOT: the subject or the
 * configuration is unusable; `why` has the error. Else `why` is empty, or says that the command is
 * unknown.
 */
enum explained explain(const struct config *config, const struct command_table *table,
                       struct slice subject, const struct slice *words, size_t n_words, FILE *out,
                       char *why, size_t why_size);

#endif
