/*
 * Parses LIMIT commands.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_ASK_PARSE_H
#define WEIR_QUOTA_ASK_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "quota/ask.h"

/*
 * Parse a whole multibulk request; `name` is the command's, as in own.def ("limit|funnel"). What is asked of several
 * keys goes into `parts`, which has room for QUOTA_PARTS_MAX, and ask->parts points there. False: `why` is the text of
 * the error reply without its '-', "ERR ..."; it may contain bytes of the request (build_error escapes them).
 */
__attribute__((warn_unused_result)) bool quota_ask_parse(struct quota_ask *ask, struct quota_ask *parts,
                                                         struct slice name, struct slice request, char *why,
                                                         size_t why_size);

/*
 * Give an ask about a named limit (CHECK) that limit's rule; after that it is like any other ask. With several keys the
 * caller has set the rule of each part, and `rule` is NULL. False: its cost does not fit the rule, as `why` says.
 */
__attribute__((warn_unused_result)) bool quota_ask_resolve(struct quota_ask *ask, struct quota_ask *parts,
                                                           const struct quota_rule *rule, char *why, size_t why_size);

#endif
