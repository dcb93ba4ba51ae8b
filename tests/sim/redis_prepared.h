/*
 * Scripts that somebody will load again and again, whichever server he starts: their sums and their code.
 */
#ifndef WEIR_SIM_REDIS_PREPARED_H
#define WEIR_SIM_REDIS_PREPARED_H

#include "tests/sim/redis_sha.h"
#include "tests/sim/redis_text.h"

struct prepared {
    struct slice body;
    char sha[SHA1_HEX + 1];
    struct text code; /* as lua_dump writes it, with the names and lines that errors tell */
};

/* NULL: nobody has foreseen that script. */
const struct prepared *prepared_find(struct slice body);

/* Without a first line that is no Lua. */
struct slice script_code(struct slice body);

#define SCRIPT_CHUNK "@user_script" /* what errors call it */

#endif
