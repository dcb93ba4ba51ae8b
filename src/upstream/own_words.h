/*
 * What weir says to Redis for its own sake, in a spelling that no client uses: so that of what MONITOR shows weir's
 * clients do not see what is none of theirs. Redis takes a command's name in any case.
 */
#ifndef WEIR_UPSTREAM_OWN_WORDS_H
#define WEIR_UPSTREAM_OWN_WORDS_H

#include <stdbool.h>

#include "base/slice.h"

#define OWN_HELLO "hELLO"
#define OWN_RESET "rESET"
#define OWN_PUBLISH "pUBLISH"
#define OWN_CLIENT "cLIENT"
#define OWN_SELECT "sELECT"
#define OWN_AUTH "aUTH" /* for the lane; what a client has asked for is said as AUTH */

/*
 * Do these bytes begin with a whole line of MONITOR's, "+time [database address] "word" ...", about what weir says so?
 */
bool own_words_in_line(struct slice bytes);

#endif
