/*
 * weir's own login: its user with the password that upstream-password-file has now, and with the one that the file had
 * before. The newest is tried first, and the one before when Redis refuses that: a file may be written before Redis
 * knows the password, or after Redis has forgotten the old one.
 *
 * Time is an argument. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_OWN_LOGIN_H
#define WEIR_UPSTREAM_OWN_LOGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/login/login.h"

struct own_login {
    struct login *newest; /* one reference; NULL: weir does not log in */
    struct login *before; /* the same with the password before; NULL: there is none */
    uint32_t number;      /* of the newest, as node->proven_number has it */
    uint64_t newest_ns;   /* the one before is in use until then, as the newest was refused; 0: the newest is in use */
    bool is_newest_refused;
    bool is_before_refused; /* since Redis has accepted either of them */
};

struct own_login_words {
    struct slice user, newest, before; /* `before` may be empty */
    uint32_t number;
};

/* weir logs in by these words from now on. False: out of memory, and nothing changes. */
bool own_login_set(struct own_login *own, const struct own_login_words *words);
void own_login_fini(struct own_login *own);

/* With which to log in now; NULL: weir does not. Good until own_login_set. */
struct login *own_login_now(struct own_login *own, uint64_t now_ns);

/* Redis has refused this one. True: there is another one to try at once. `again_ns`: the newest is in use again after so long. */
bool own_login_refuse(struct own_login *own, const struct login *login, uint64_t now_ns, uint64_t again_ns);

/* Redis has accepted one of them. */
void own_login_accept(struct own_login *own);

#endif
