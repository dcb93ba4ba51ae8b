/* Scripts that will be loaded often, by any server: their SHA-1 and compiled code. */
#ifndef WEIR_SIM_REDIS_PREPARED_H
#define WEIR_SIM_REDIS_PREPARED_H

#include "tests/sim/redis_sha.h"
#include "tests/sim/redis_text.h"

struct prepared {
    struct slice body;
    char sha[SHA1_HEX + 1];
    struct text code; /* output of lua_dump, with names and lines for errors */
};

/* NULL: the script is not prepared. */
const struct prepared *prepared_find(struct slice body);

/* The body without a first line "#!...". */
struct slice script_code(struct slice body);

#define SCRIPT_CHUNK "@user_script" /* the script's name in errors */

#endif
