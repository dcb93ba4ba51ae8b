/*
 * What COMMAND says of weir's own commands: the rows of own.def in the shapes of Redis' replies.
 */
#ifndef WEIR_QUOTA_DOCS_H
#define WEIR_QUOTA_DOCS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/own.h"
#include "resp/argv.h"
#include "resp/build.h"

#define DOCS_CATEGORY "limit" /* of all of them; COMMAND writes "@limit" */

/* Elements of an entry of COMMAND: since Redis 7, and before. */
#define DOCS_INFO_MAX 10
#define DOCS_INFO_OLD 7

/* Is it a command of its own, and no container's subcommand? */
bool docs_is_top(const struct own *own);
int64_t docs_top_count(void);
bool docs_is_container(const struct own *own);

/* Its entry in COMMAND and COMMAND INFO, as many of the elements as asked for, up to DOCS_INFO_MAX. */
void docs_info(struct build *build, const struct own *own, int64_t elements);

/* Its entry in COMMAND DOCS: the name, then a map. */
void docs_entry(struct build *build, const struct own *own);

/*
 * What COMMAND GETKEYS answers for a call of it, an error where Redis has one; with flags, GETKEYSANDFLAGS. `words` are
 * all of the call's, from the (container's) name on.
 */
void docs_keys(struct build *build, const struct own *own, struct argv_walk words, bool with_flags);

#endif
