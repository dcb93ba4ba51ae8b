#include "limit/own.h"

enum control { LIMITED, CONTROL };
enum who { ANYBODY, OPERATOR };

static const struct own rows[] = {
#define OWN(name_, arity_, class, who, first, last, step, arguments_, summary_)                                        \
    {.name = (name_),                                                                                                  \
     .arguments = (arguments_),                                                                                        \
     .summary = (summary_),                                                                                            \
     .arity = (arity_),                                                                                                \
     .first_key = (first),                                                                                             \
     .last_key = (last),                                                                                               \
     .key_step = (step),                                                                                               \
     .is_control = (class) == CONTROL,                                                                                 \
     .is_operators = (who) == OPERATOR},
#include "limit/own.def"
#undef OWN
};

size_t own_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct own *own_row(size_t i)
{
    return &rows[i];
}

const struct own *own_find(struct slice name)
{
    for (size_t i = 0; i < own_count(); i++)
        if (slice_eq_nocase(slice_str(rows[i].name), name))
            return &rows[i];
    return NULL;
}
