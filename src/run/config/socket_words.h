/*
 * The words behind the address of a listening socket: "mode 0660 group www-data", of a unix socket, and "proxy".
 */
#ifndef WEIR_RUN_SOCKET_WORDS_H
#define WEIR_RUN_SOCKET_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "net/listen.h"

struct socket_words {
    struct slice address; /* what stands before them */
    bool has_proxy;
    struct listen_rights rights;
};

/* Read an address and its words. A group is looked up, which may block. False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool socket_words_parse(struct socket_words *words, struct slice text, char *why,
                                                            size_t why_size);

#endif
