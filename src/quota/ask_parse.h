/*
 * From the words of a LIMIT command to what they ask for.
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
 * Read a whole multibulk request; `name` is the command's, as own.def has it ("limit|funnel"). What it asks of several
 * keys is put into `parts`, which has room for QUOTA_PARTS_MAX, and ask->parts points there. False: `why` is the text
 * of the error reply without its '-', "ERR ..."; it may hold bytes of the request (build_error cleans them).
 */
__attribute__((warn_unused_result)) bool quota_ask_parse(struct quota_ask *ask, struct quota_ask *parts,
                                                         struct slice name, struct slice request, char *why,
                                                         size_t why_size);

/*
 * What has a name becomes what the operator has named so: after this it is like any other ask. Of several keys each part has
 * been given its rule, and `rule` is NULL. False: its cost does not fit it.
 */
__attribute__((warn_unused_result)) bool quota_ask_resolve(struct quota_ask *ask, struct quota_ask *parts,
                                                           const struct quota_rule *rule, char *why, size_t why_size);

#endif
