/*
 * What Redis answers to a command, or a subcommand, that it does not know; for names that must not reach it.
 *
 * Redis finds names by a hash of all their bytes but compares up to a NUL, so that "GET\0x" can happen to run as GET:
 * such a name is answered here, as Redis answers a name that it does not find.
 */
#ifndef WEIR_FRONT_UNKNOWN_H
#define WEIR_FRONT_UNKNOWN_H

#include <stdbool.h>
#include <string.h>

#include "front/route/request.h"

#define UNKNOWN_SHOWN 128 /* bytes of a name, and of a command's arguments, that Redis repeats */
#define UNKNOWN_ROOM (3 * UNKNOWN_SHOWN + 128)

/* Does the name hold a NUL, so that Redis may run the part before it? */
static inline bool unknown_by_luck(struct slice name)
{
    return memchr(name.at, '\0', name.len) != NULL;
}

/* The error reply, in `out`, which has room for UNKNOWN_ROOM bytes. Redis before 7.0 words it otherwise. */
struct slice unknown_command(const struct request *request, bool is_before_7, char *out);

/* The same for the first argument of a command that has subcommands. */
struct slice unknown_subcommand(const struct request *request, bool is_before_7, char *out);

#endif
