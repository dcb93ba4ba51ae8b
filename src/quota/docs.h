/*
 * What COMMAND and its subcommands say about weir's own commands, in the form of Redis' replies, from own.def.
 */
#ifndef WEIR_QUOTA_DOCS_H
#define WEIR_QUOTA_DOCS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/own.h"
#include "resp/argv.h"
#include "resp/build.h"

#define DOCS_CATEGORY "limit" /* of all of them; COMMAND writes "@limit" */

/* How many elements an entry of COMMAND has: since Redis 7.0, and before. */
#define DOCS_INFO_MAX 10
#define DOCS_INFO_OLD 7

/* Is it a command, not a subcommand? */
bool docs_is_top(const struct own *own);
int64_t docs_top_count(void);
bool docs_is_container(const struct own *own);

/* Its entry in COMMAND and COMMAND INFO, with so many of the elements, at most DOCS_INFO_MAX. */
void docs_info(struct build *build, const struct own *own, int64_t elements);

/* Its entry in COMMAND DOCS: the name, then a map. */
void docs_entry(struct build *build, const struct own *own);

/*
 * What COMMAND GETKEYS, or with_flags GETKEYSANDFLAGS, answers for a call of it, errors included. `words` are all words
 * of that call, the command's name included.
 */
void docs_keys(struct build *build, const struct own *own, struct argv_walk words, bool with_flags);

#endif
