/*
 * Numbers in the environment.
 */
#ifndef WEIR_RUN_ENVIRONMENT_H
#define WEIR_RUN_ENVIRONMENT_H

#include <stdint.h>

/* The variable's value, from 1 to `most`; 0: not set, or not such a number. */
int64_t environment_number(const char *name, int64_t most);

#endif
