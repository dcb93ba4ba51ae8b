/*
 * Writes a configuration as it was understood: every default, every limit with all its words, included files and
 * variables in their places; in a form that is read again with the same meaning.
 */
#ifndef WEIR_RUN_CONFIG_DUMP_H
#define WEIR_RUN_CONFIG_DUMP_H

#include <stdio.h>

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * `config` was built from `file`, whole and without an error. Passwords are in files of their own, whose names are
 * written. A value that with its variables is too long for a line is written with them.
 */
void config_dump(const struct config *config, const struct config_file *file, FILE *out);

#endif
