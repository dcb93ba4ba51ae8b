#include "base/bytes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 256

/* Doubles the room, so that each byte is copied less than twice on average. */
char *bytes_reserve(struct bytes *bytes, size_t n, size_t most)
{
    size_t room = bytes->room > 0 ? bytes->room : FIRST_ROOM;
    if (bytes->len > most || n > most - bytes->len)
        return NULL;
    while (room - bytes->len < n)
        room = room > SIZE_MAX / 2 ? SIZE_MAX : 2 * room;
    if (room > bytes->room) {
        char *at = realloc(bytes->at, room);
        if (at == NULL)
            return NULL;
        bytes->at = at;
        bytes->room = room;
    }
    return bytes->at + bytes->len;
}

bool bytes_add(struct bytes *bytes, struct slice piece, size_t most)
{
    char *to = bytes_reserve(bytes, piece.len, most);
    if (to == NULL)
        return false;
    if (piece.len > 0)
        memcpy(to, piece.at, piece.len);
    bytes->len += piece.len;
    return true;
}

void bytes_fini(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}
