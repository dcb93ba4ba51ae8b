#include "base/why.h"

#include <stdarg.h>
#include <stdio.h>

bool why_set(char *why, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

bool why_refuse(struct why why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why.out, why.size, format, args);
    va_end(args);
    return false;
}
