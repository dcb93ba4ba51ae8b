/* Removes lines from a failing scenario that the failure does not need. */
#ifndef WEIR_SIM_SHRINK_H
#define WEIR_SIM_SHRINK_H

#include <stdbool.h>

/* Shrinks the file in place. False: the file cannot be read or written, or does not fail. */
bool shrink(const char *path);

#endif
