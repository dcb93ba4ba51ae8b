/*
 * What is known of a client (facts), how its subject's name is made from them (identity), and what the terms of a
 * policy's `match` compare.
 */
#ifndef WEIR_LIMIT_IDENTITY_H
#define WEIR_LIMIT_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/ip.h"

struct facts {
    struct slice user;     /* empty until a user other than `default` has logged in */
    struct slice name;     /* CLIENT SETNAME; empty if none */
    struct slice tls;      /* the name in its verified certificate; empty if none */
    struct slice listener; /* the address it connected to, as configured; empty if nothing asks for it */
    struct slice key;      /* the first key of the command in question; .at is NULL if there is none */
    struct ip ip;          /* family 0 on a unix socket */
};

#define IDENTITY_MAX_SOURCES 8
#define SUBJECT_NAME_MAX 320 /* bytes; longer names are cut, and a hash of the whole name is appended */

struct identity {
    struct {
        uint8_t kind;
        uint8_t prefix; /* bits, for ip (v4) and ip6; segments, for key */
    } sources[IDENTITY_MAX_SOURCES];
    uint8_t count;
};

/*
 * Parse "user, ip", "name, ip/24, ip6/64", "key:2, listener" ... `ip` alone is the whole address of either family; ip/N
 * applies to IPv4, ip6/N to IPv6; key:N is the first N segments, between colons, of a command's first key. False: `why`
 * says what is wrong.
 */
__attribute__((warn_unused_result)) bool identity_parse(struct identity *identity, struct slice text, char *why,
                                                        size_t why_size);

/*
 * Write the subject's name, by the first source that is known ("user:free-17", "ip:10.1.2.0/24", "ip:2001:db8::/64");
 * when none is, by the whole address; without one (a unix socket) "ip:unix". Printable ASCII without spaces: other
 * bytes and '%' become %XX. Returns its length; `out` has SUBJECT_NAME_MAX bytes.
 */
size_t identity_subject(const struct identity *identity, const struct facts *facts, char *out);

/* Does the subject depend on a command's key, with these facts? Then identity_subject is called for each command. */
bool identity_needs_key(const struct identity *identity, const struct facts *facts);

/* "ip:10.1.2.3", "ip:2001:db8::/64", "ip:unix": whom connections count for before they are bound. SUBJECT_NAME_MAX. */
size_t identity_site(const struct ip *ip, char *out);

/* "ip:10.1.2.3", whatever the identity: the subject that failed logins are counted for. SUBJECT_NAME_MAX bytes. */
size_t identity_address(const struct facts *facts, char *out);

/* Which of a client's facts a term of a match looks at. */
enum match_fact { MATCH_USER, MATCH_NAME, MATCH_TLS, MATCH_LISTENER, MATCH_KEY, MATCH_IP, MATCH_FACTS };

/* One term of a policy's match: user:GLOB, name:GLOB, tls:GLOB, listener:GLOB, key:GLOB, ip:ADDRESS[/N]. */
struct match {
    uint8_t kind;           /* enum match_fact */
    struct network network; /* for ip */
    char *glob;             /* heap; NULL for ip */
};

__attribute__((warn_unused_result)) bool match_parse(struct match *match, struct slice text, char *why,
                                                     size_t why_size);
bool match_holds(const struct match *match, const struct facts *facts);
bool match_is_of_key(const struct match *match);

/* Does `wide` hold for whomever `narrow` holds for? Only what can be proven from the two alone. */
bool match_covers(const struct match *wide, const struct match *narrow);

/* Does it hold for everybody (listener:*)? */
bool match_is_of_all(const struct match *match);

/* Does it hold for everybody of whom there is such a fact at all (user:*, ip:0.0.0.0/0)? */
bool match_is_open(const struct match *match);

/* Does it believe what the client says of itself (name, key)? */
bool match_is_claimed(const struct match *match);

/* "user", "ip" ... */
const char *match_kind(const struct match *match);
void match_fini(struct match *match);

#endif
