/*
 * Takes away from a scenario that fails what it does not need to fail.
 */
#ifndef WEIR_SIM_SHRINK_H
#define WEIR_SIM_SHRINK_H

#include <stdbool.h>

/* In place. False: it cannot be read or written, or does not fail. */
bool shrink(const char *path);

#endif
