/*
 * Numbers in the environment.
 */
#ifndef WEIR_RUN_ENVIRONMENT_H
#define WEIR_RUN_ENVIRONMENT_H

#include <stdint.h>

/* From 1 to `most`; 0: the variable is not set, or is none. */
int64_t environment_number(const char *name, int64_t most);

#endif
