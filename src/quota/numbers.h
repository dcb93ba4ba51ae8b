/*
 * What a script has told of one call, taken from its answer: the numbers of its keys, and penalties they are under.
 */
#ifndef WEIR_QUOTA_NUMBERS_H
#define WEIR_QUOTA_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "quota/answer.h"
#include "quota/outcome.h"

/*
 * `numbers` has room for quota_numbers(ask), `holds` is empty, one for each of several keys, or one. Where a key is wrong
 * *error is the script's text, and else untouched. False: it is not what it should be.
 */
__attribute__((warn_unused_result)) bool quota_numbers_read(struct answer *answer, const struct quota_ask *ask,
                                                            int64_t *numbers, struct quota_hold *holds,
                                                            struct slice *error);

#endif
