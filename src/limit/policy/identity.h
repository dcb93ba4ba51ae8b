/*
 * The facts of a client, how they make the name of its subject (identity), and the terms of a
 * policy's `match`.
 */
#ifndef WEIR_LIMIT_IDENTITY_H
#define WEIR_LIMIT_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/ip.h"

struct facts {
    struct slice user; /* empty until a user other than `default` has logged in */
    struct slice name; /* from CLIENT SETNAME; empty: none */
    struct slice tls;  /* name in the client's verified certificate; empty: none */
    /* listener address, as configured; empty if no policy or identity needs it */
    struct slice listener;
    struct slice key; /* first key of the command; .at is NULL: no key */
    struct ip ip;     /* family 0 on a unix socket */
};

#define IDENTITY_MAX_SOURCES 8
/* bytes; a longer name is cut, and a hash of the whole name is appended */
#define SUBJECT_NAME_MAX 320

struct identity {
    struct {
        uint8_t kind;
        uint8_t prefix; /* bits for ip (v4) and ip6; segments for key */
    } sources[IDENTITY_MAX_SOURCES];
    uint8_t count;
};

/*
 * Parses "user, ip", "name, ip/24, ip6/64", "key:2, listener" ... `ip` alone is the whole address
 * of either family. ip/N applies to IPv4, ip6/N to IPv6. key:N is the first N segments, between
 * colons, of a command's first key. False: `why` holds the reason.
 */
__attribute__((warn_unused_result)) bool identity_parse(struct identity *identity,
                                                        struct slice text, char *why,
                                                        size_t why_size);

/*
 * Writes the name of the subject from the first source that is known: "user:free-17",
 * "ip:10.1.2.0/24", "ip:2001:db8::/64". If no source is known, the whole address is used; on a unix
 * socket "ip:unix". The name is printable ASCII without spaces: other bytes and '%' become %XX.
 * Returns the length of the name; `out` has SUBJECT_NAME_MAX bytes.
 */
size_t identity_subject(const struct identity *identity, const struct facts *facts, char *out);

/*
 * True if, with these facts, the subject depends on a command's key. identity_subject is then
 * called for each command.
 */
bool identity_needs_key(const struct identity *identity, const struct facts *facts);

/*
 * The subject that counts connections before they are bound: "ip:10.1.2.3", "ip:2001:db8::/64",
 * "ip:unix". `out` has SUBJECT_NAME_MAX bytes.
 */
size_t identity_site(const struct ip *ip, char *out);

/*
 * The subject that counts failed logins, for every identity: "ip:10.1.2.3". `out` has
 * SUBJECT_NAME_MAX bytes.
 */
size_t identity_address(const struct facts *facts, char *out);

/* The fact of a client that a match term compares. */
enum match_fact {
    MATCH_USER,
    MATCH_NAME,
    MATCH_TLS,
    MATCH_LISTENER,
    MATCH_KEY,
    MATCH_IP,
    MATCH_FACTS
};

/* A match term: user:GLOB, name:GLOB, tls:GLOB, listener:GLOB, key:GLOB, ip:ADDRESS[/N]. */
struct match {
    uint8_t kind;           /* enum match_fact */
    struct network network; /* for ip */
    char *glob;             /* heap; NULL for ip */
};

__attribute__((warn_unused_result)) bool match_parse(struct match *match, struct slice text,
                                                     char *why, size_t why_size);
bool match_holds(const struct match *match, const struct facts *facts);
bool match_is_of_key(const struct match *match);

/*
 * True if `wide` provably holds for every client for which `narrow` holds. Looks at the two terms
 * alone.
 */
bool match_covers(const struct match *wide, const struct match *narrow);

/* True if the term holds for all clients (listener:*). */
bool match_is_of_all(const struct match *match);

/* True if the term holds for all clients that have the fact (user:*, ip:0.0.0.0/0). */
bool match_is_open(const struct match *match);

/* True if the term relies on what the client claims (name, key). */
bool match_is_claimed(const struct match *match);

/* "user", "ip" ... */
const char *match_kind(const struct match *match);
void match_fini(struct match *match);

#endif
