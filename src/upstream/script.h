/*
 * The scripts that Redis runs for weir: the files of upstream/scripts/, which are part of the program.
 */
#ifndef WEIR_UPSTREAM_SCRIPT_H
#define WEIR_UPSTREAM_SCRIPT_H

#include "base/slice.h"

#define SCRIPT_SHA_LEN 40

enum script {
#define SCRIPT(id, files) SCRIPT_##id,
#include "upstream/scripts.def"
#undef SCRIPT
    SCRIPT_COUNT
};

struct slice script_source(enum script script);

#endif
