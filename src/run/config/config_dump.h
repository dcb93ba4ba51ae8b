/*
 * Writes a configuration as weir understands it: every default, every limit with all its words,
 * included files and variables expanded. The output can be read again with the same meaning.
 */
#ifndef WEIR_RUN_CONFIG_DUMP_H
#define WEIR_RUN_CONFIG_DUMP_H

#include <stdio.h>

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * `config` was built from `file`, whole and without an error. Passwords are in files of their own;
 * the paths are written. A value that is too long for a line when expanded is written with its
 * variables.
 */
void config_dump(const struct config *config, const struct config_file *file, FILE *out);

#endif
