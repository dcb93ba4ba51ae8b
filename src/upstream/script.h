/*
 * The Lua scripts that Redis runs for weir: the files of upstream/scripts/, embedded in the
 * program. Constant.
 */
#ifndef WEIR_UPSTREAM_SCRIPT_H
#define WEIR_UPSTREAM_SCRIPT_H

#include "base/slice.h"

#define SCRIPT_SHA_LEN 40 /* characters of a hash, as returned by SCRIPT LOAD */

enum script {
#define SCRIPT(id, files) SCRIPT_##id,
#include "upstream/scripts.def"
#undef SCRIPT
    SCRIPT_COUNT
};

/* Returns the whole text of the script. */
struct slice script_source(enum script script);

#endif
