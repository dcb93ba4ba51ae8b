#include "base/choice.h"

#include <stdio.h>

#include "base/why.h"

size_t choice_find(const char *const *words, struct slice value)
{
    size_t i = 0;
    while (words[i] != NULL && !slice_eq_nocase(value, slice_str(words[i])))
        i++;
    return i;
}

bool choice_take(const char *const *words, struct slice value, unsigned *index, char *why, size_t why_size)
{
    size_t found = choice_find(words, value);
    *index = (unsigned)found;
    if (words[found] != NULL)
        return true;
    int len = snprintf(why, why_size, "\"%.*s\" is", WHY_SLICE(value));
    for (size_t i = 0; words[i] != NULL && len >= 0 && (size_t)len < why_size; i++)
        len += snprintf(why + len, why_size - (size_t)len, " %s %s", i == 0 ? "neither" : "nor", words[i]);
    return false;
}
