/* MUST() checks an invariant of a session. A failure prints the last events of each connection. */
#ifndef WEIR_FUZZ_SESSION_MUST_H
#define WEIR_FUZZ_SESSION_MUST_H

#include "pieces.h"
#include "tests/sim/trace.h"

#define TOLD_OF_EACH 60 /* events printed for each connection */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            trace_tell(stderr, TOLD_OF_EACH);                                                      \
            REQUIRE(condition);                                                                    \
        }                                                                                          \
    } while (0)

#endif
