/*
 * How much of each unit a request takes when it wants to pass: a row for each unit of which that is not always one.
 *
 * Any thread.
 */
#ifndef WEIR_LIMIT_AMOUNT_H
#define WEIR_LIMIT_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command.h"
#include "limit/policy/limit.h"
#include "limit/policy/policy.h"

struct amounts {
    uint64_t of[UNIT_COUNT];
};

/* May a request take other than one of this unit? */
bool amount_varies(enum unit unit);

/* Of a whole request, or the beginning of one that is cut short. Bytes: one; the rest is owed when they have passed. */
void amounts_take(struct amounts *amounts, const struct policies *policies, const struct command *command,
                  struct slice request, uint32_t argc);

#endif
