/*
 * Names of commands that weir sends for its own purposes, in a spelling that no client uses: so weir can tell them
 * apart in what MONITOR shows, and keep them from its clients. Redis takes a command's name in upper and lower case.
 */
#ifndef WEIR_UPSTREAM_OWN_WORDS_H
#define WEIR_UPSTREAM_OWN_WORDS_H

#include <stdbool.h>

#include "base/slice.h"

#define OWN_HELLO "hELLO"
#define OWN_ECHO "eCHO"
#define OWN_PING "pING"
#define OWN_RESET "rESET"
#define OWN_SET "sET"
#define OWN_CLIENT "cLIENT"
#define OWN_QUIT "qUIT"
#define OWN_READONLY "rEADONLY"
#define OWN_SELECT "sELECT"
#define OWN_AUTH "aUTH" /* to log a lane in; the login that a client asks for is sent as AUTH */

/* Do these bytes begin with a whole line of MONITOR's, "+time [database address] "word" ...", of such a command? */
bool own_words_in_line(struct slice bytes);

#endif
