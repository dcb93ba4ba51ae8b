/*
 * Addresses as written in a configuration, and as socket addresses (endpoints).
 *
 * Written forms: host:port, [v6]:port or unix:/path; tls: before the first two. The address of a
 * listener may have words after it.
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
 * Parses an address. may_choose_port: weir listens on the address, and port 0 is valid. False:
 * `why` has the error, and *address is untouched.
 */
__attribute__((warn_unused_result)) bool address_parse(struct address *address, struct slice text,
                                                       bool may_choose_port, struct why why);
/* Parses the address of a sentinel. A unix socket is accepted; the caller refuses it. */
__attribute__((warn_unused_result)) bool address_parse_sentinel(struct address *address,
                                                                struct slice text, struct why why);
/* Parses an address where weir serves HTTP: only host:port or [v6]:port; port 0 is valid. */
__attribute__((warn_unused_result)) bool address_parse_http(struct address *address,
                                                            struct slice text, struct why why);

/* True if the text begins with "unix:". */
bool address_is_unix(struct slice text);

/* True if both are written alike; case does not matter. */
bool address_eq(const struct address *a, const struct address *b);

/*
 * True if both are one address in any notation: [::1] and [0:0::1], 10.0.0.1 and [::ffff:10.0.0.1].
 * TLS is not compared.
 */
bool address_is_same(const struct address *a, const struct address *b);

void address_fini(struct address *address);

/* Writes "127.0.0.1:6379", "tls:[::1]:6379" or "unix:/path" into out. */
#define ADDRESS_TEXT 512
void address_print(const struct address *address, char *out, size_t size);

/*
 * True for a path or a numeric address, which need no name lookup; *out is the endpoint. Else *out
 * is untouched.
 */
bool address_is_literal(const struct address *address, struct endpoint *out);

/*
 * Returns NULL, or why the address cannot be resolved (static). Looking up a host's name may block.
 */
__attribute__((warn_unused_result)) const char *address_resolve(const struct address *address,
                                                                struct endpoint *out);

#define ENDPOINT_TEXT 160

/* Writes "127.0.0.1:6379", "[::1]:6379" or "unix:/path" into out. */
void endpoint_print(const struct endpoint *endpoint, char out[ENDPOINT_TEXT]);

/* Returns the port; not for unix sockets. */
uint16_t endpoint_port(const struct endpoint *endpoint);

/*
 * The words after the address of a listener: "mode 0660 group www-data" for a unix socket, and
 * "proxy".
 */
struct socket_words {
    struct slice address; /* the address before the words */
    bool has_proxy;
    struct listen_rights rights;
};

/* Parses an address and its words. Looking up a group may block. False: `why` has the error. */
__attribute__((warn_unused_result)) bool socket_words_parse(struct socket_words *words,
                                                            struct slice text, struct why why);

#endif
