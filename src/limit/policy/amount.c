#include "limit/policy/amount.h"

typedef uint64_t amount_of(const struct policies *policies, const struct command *command, struct slice request,
                           uint32_t argc);

static amount_of *const rows[UNIT_COUNT] = {
    [UNIT_COST] = policies_cost,
};

bool amount_varies(enum unit unit)
{
    return rows[unit] != NULL;
}

void amounts_take(struct amounts *amounts, const struct policies *policies, const struct command *command,
                  struct slice request, uint32_t argc)
{
    for (size_t unit = 0; unit < UNIT_COUNT; unit++)
        amounts->of[unit] = rows[unit] != NULL ? rows[unit](policies, command, request, argc) : 1;
}
