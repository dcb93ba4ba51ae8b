#include "run/environment.h"

#include <stdlib.h>

#include "base/num.h"

int64_t environment_number(const char *name, int64_t most)
{
    const char *text = getenv(name);
    int64_t number;
    return text != NULL && num_parse(slice_str(text), &number) && number > 0 && number <= most ? number : 0;
}
