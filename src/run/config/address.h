/*
 * Addresses: as written in a configuration (host:port, [v6]:port or unix:/path; tls: in front of the first two; words
 * behind one that is listened on), and as socket addresses (endpoints).
 */
#ifndef WEIR_RUN_ADDRESS_H
#define WEIR_RUN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/why.h"
#include "net/link.h"
#include "net/listen.h"

struct address {
    char *host; /* heap; a path when is_unix */
    uint16_t port;
    bool is_unix;
    bool is_tls;
};

/*
 * With may_choose_port an address where weir listens, of which port 0 is one. False: `why` says what is wrong, and
 * *address is untouched.
 */
__attribute__((warn_unused_result)) bool address_parse(struct address *address, struct slice text, bool may_choose_port,
                                                       struct why why);
/* Where a sentinel is. A unix socket is accepted, which the caller refuses. */
__attribute__((warn_unused_result)) bool address_parse_sentinel(struct address *address, struct slice text,
                                                                struct why why);
/* Where weir serves HTTP: only host:port or [v6]:port, port 0 too. */
__attribute__((warn_unused_result)) bool address_parse_http(struct address *address, struct slice text, struct why why);

/* Does the text begin with "unix:"? */
bool address_is_unix(struct slice text);

/* As written, but for case. */
bool address_eq(const struct address *a, const struct address *b);

/* The same, in whatever way digits are written: [::1] and [0:0::1], 10.0.0.1 and [::ffff:10.0.0.1]. TLS does not count. */
bool address_is_same(const struct address *a, const struct address *b);

void address_fini(struct address *address);

/* Write "127.0.0.1:6379", "tls:[::1]:6379" or "unix:/path" into out. */
#define ADDRESS_TEXT 512
void address_print(const struct address *address, char *out, size_t size);

/* True if no name is to be looked up for it: a path, or the digits of an address. *out is where it leads, else untouched. */
bool address_is_literal(const struct address *address, struct endpoint *out);

/* Returns NULL, or why the address cannot be resolved (static). A host's name is looked up: that may block. */
__attribute__((warn_unused_result)) const char *address_resolve(const struct address *address, struct endpoint *out);

#define ENDPOINT_TEXT 160

/* Write "127.0.0.1:6379", "[::1]:6379" or "unix:/path" into out. */
void endpoint_print(const struct endpoint *endpoint, char out[ENDPOINT_TEXT]);

/* The port; not for unix sockets. */
uint16_t endpoint_port(const struct endpoint *endpoint);

/* The words behind the address of a listening socket: "mode 0660 group www-data" of a unix socket, and "proxy". */
struct socket_words {
    struct slice address; /* what stands before them */
    bool has_proxy;
    struct listen_rights rights;
};

/* Read an address and its words. A group is looked up, which may block. False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool socket_words_parse(struct socket_words *words, struct slice text,
                                                            struct why why);

#endif
