/*
 * The table of keys, as `weir --keys` prints it: a configuration in which each key is commented out.
 */
#ifndef WEIR_RUN_CONFIG_HELP_H
#define WEIR_RUN_CONFIG_HELP_H

#include <stdio.h>

void config_help_print(FILE *out);

#endif
