/*
 * The name in a peer's certificate.
 */
#ifndef WEIR_NET_TLS_NAME_H
#define WEIR_NET_TLS_NAME_H

#include <stdbool.h>

struct ssl_st;

#define TLS_NAME_MAX 255 /* bytes */

/*
 * The first subject alternative name that is a URI, a DNS name or a mail address; without one the common name, the last
 * if there are several. *name is heap, or NULL when the peer has shown no certificate, or one without such a name.
 * False: the name is empty, longer than TLS_NAME_MAX, or has a NUL or a control character in it, and so could be taken
 * for another; *why (static) says so.
 */
__attribute__((warn_unused_result)) bool tls_name_read(const struct ssl_st *ssl, char **name, const char **why);

#endif
