/*
 * What clients say of their libraries: CLIENT SETINFO LIB-NAME and LIB-VER, which most send when they connect.
 *
 * A shared lane bears weir's own name in their place, since the lane is nobody's. A lane of a client's own is told
 * before the client asks what Redis shows of it (CLIENT ID, INFO, LIST ...), and then it is for nobody else: RESET does
 * not take that away.
 */
#ifndef WEIR_FRONT_LIBRARY_H
#define WEIR_FRONT_LIBRARY_H

#include <stdbool.h>

#include "base/list.h"
#include "base/slice.h"
#include "front/request.h"

#define LIBRARY_TEXT_MAX 256 /* bytes of a name or version; a longer one is not told to other lanes */

struct client;
struct lane;

/* One for all clients of a worker that say the same; counted. */
struct library {
    struct list in_known;
    unsigned holders;
    size_t name_len;
    size_t version_len;
    char text[]; /* the name, then the version */
};

/*
 * Hold the one that differs from `held` (NULL: nothing is known) in one word, in its place. False: out of memory, and
 * nothing has changed.
 */
__attribute__((warn_unused_result)) bool library_change(struct list *known, struct library **held, bool is_version,
                                                        struct slice value);
void library_put(struct library *library); /* NULL: nothing */

/* CLIENT SETINFO is about to be sent: what it says is remembered. False: out of memory. */
bool library_note(struct client *client, const struct request *request);

/* Send it; its call is the lane's newest. */
void library_send(struct client *client, struct lane *lane, const struct request *request);

/* Does this request show what Redis knows of its connection? Then its lane must be told before. */
bool library_is_asked(const struct request *request);

/* Tell the client's own lane. False: out of memory. */
bool library_tell(struct client *client, struct lane *lane);

#endif
