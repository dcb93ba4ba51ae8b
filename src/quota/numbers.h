/*
 * Reads the integers that a script returned for one call, and the penalties that its keys are under, from the reply.
 */
#ifndef WEIR_QUOTA_NUMBERS_H
#define WEIR_QUOTA_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "quota/answer.h"
#include "quota/outcome.h"

/*
 * `numbers` has room for quota_numbers(ask); `holds` is zeroed, one for each key. If the script reports an error for a
 * key, *error is its text, else untouched. False: the reply does not have the expected form.
 */
__attribute__((warn_unused_result)) bool quota_numbers_read(struct answer *answer, const struct quota_ask *ask,
                                                            int64_t *numbers, struct quota_hold *holds,
                                                            struct slice *error);

#endif
