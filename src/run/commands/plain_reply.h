/*
 * A reply in RESP3 as lines for people: "name value" for each pair of a map.
 */
#ifndef WEIR_RUN_PLAIN_REPLY_H
#define WEIR_RUN_PLAIN_REPLY_H

#include <stdio.h>

#include "base/slice.h"

/*
 * Write a map that resp/build.h has made. What is in it is a text, a number, nil ("none"), an array of those on one
 * line, or an array of maps, each on a line of its own below.
 */
void plain_reply_print(struct slice reply, FILE *out);

#endif
