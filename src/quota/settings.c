#include "quota/settings.h"

#include <stdlib.h>
#include <sys/random.h>

void quota_settings_init(struct quota_settings *settings)
{
    if (getrandom(&settings->key, sizeof settings->key, 0) != (ssize_t)sizeof settings->key)
        abort();
    settings->local = local_new();
    settings->limited = top_new();
}

void quota_settings_fini(struct quota_settings *settings)
{
    local_free(settings->local);
    top_free(settings->limited);
}
