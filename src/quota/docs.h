/*
 * Entries of COMMAND INFO, DOCS and LIST for weir's own commands, in the form of Redis' replies,
 * made from own.def. Any thread.
 */
#ifndef WEIR_QUOTA_DOCS_H
#define WEIR_QUOTA_DOCS_H

#include <stdbool.h>

#include "limit/command/own.h"
#include "resp/build.h"

/* True if the command is no subcommand. */
bool docs_is_top(const struct own *own);

/* Writes the command's entry in COMMAND and COMMAND INFO. */
void docs_info(struct build *build, const struct own *own);

/* Writes the command's entry in COMMAND DOCS: the name, then a map. */
void docs_entry(struct build *build, const struct own *own);

/* Writes the command's entry in COMMAND LIST: the name. */
void docs_name(struct build *build, const struct own *own);

#endif
