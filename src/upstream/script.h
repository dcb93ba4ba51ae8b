/*
 * The Lua scripts that Redis runs for weir: the files of upstream/scripts/, built into the program. Constant.
 */
#ifndef WEIR_UPSTREAM_SCRIPT_H
#define WEIR_UPSTREAM_SCRIPT_H

#include "base/slice.h"

#define SCRIPT_SHA_LEN 40 /* characters of a hash, as SCRIPT LOAD tells it */

enum script {
#define SCRIPT(id, files) SCRIPT_##id,
#include "upstream/scripts.def"
#undef SCRIPT
    SCRIPT_COUNT
};

/* The whole text. */
struct slice script_source(enum script script);

#endif
