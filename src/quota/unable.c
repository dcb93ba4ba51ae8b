#include "quota/unable.h"

#include <stddef.h>
#include <string.h>

#include "upstream/node/redirect.h"

static const struct row {
    const char *code;
    enum unable unable;
} rows[] = {
    {"-READONLY", UNABLE_NOT_RUN},     {"-LOADING", UNABLE_NOT_RUN},    {"-MASTERDOWN", UNABLE_NOT_RUN},
    {"-OOM", UNABLE_TO_DECIDE},        {"-BUSY", UNABLE_TO_DECIDE},     {"-MISCONF", UNABLE_TO_DECIDE},
    {"-NOREPLICAS", UNABLE_TO_DECIDE}, {"-TRYAGAIN", UNABLE_TRY_AGAIN}, {"-CLUSTERDOWN", UNABLE_CLUSTER_DOWN},
};

static bool has_code(struct slice text, const char *code)
{
    size_t len = strlen(code);
    return text.len > len && memcmp(text.at, code, len) == 0 && text.at[len] == ' ';
}

static enum unable of_code(struct slice text)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (has_code(text, rows[i].code))
            return rows[i].unable;
    return redirect_is(text) ? UNABLE_REDIRECTED : UNABLE_NO;
}

enum unable unable_of(struct slice error)
{
    static const char wrapped[] = "-ERR Error running script";
    if (error.len < sizeof wrapped - 1 || memcmp(error.at, wrapped, sizeof wrapped - 1) != 0)
        return of_code(error);
    const char *code = memmem(error.at, error.len, ": -", 3);
    enum unable unable =
        code != NULL ? of_code(slice_of(code + 2, (size_t)(error.at + error.len - code) - 2)) : UNABLE_NO;
    return unable == UNABLE_NOT_RUN || unable == UNABLE_TO_DECIDE ? unable : UNABLE_NO;
}
