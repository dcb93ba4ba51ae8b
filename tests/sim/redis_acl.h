/*
 * Users and logins. Each user may do everything: what a user may not is not modelled.
 */
#ifndef WEIR_SIM_REDIS_ACL_H
#define WEIR_SIM_REDIS_ACL_H

#include "tests/sim/redis_state.h"

void acl_init(struct redis *redis);
void acl_fini(struct redis *redis);

/* Nobody yet, where a password is wanted. */
bool acl_is_stranger(const struct redis_conn *conn);
void acl_reset(struct redis_conn *conn); /* the default user again */

/* False: the password is wrong, or there is no such user who may come. */
bool acl_login(struct redis_conn *conn, struct slice name, struct slice password);
void acl_reply_wrong(struct redis_conn *conn); /* that it is not */
void acl_set_requirepass(struct redis *redis, struct slice password);

struct user *acl_find(const struct redis *redis, struct slice name);
void acl_insert(struct redis *redis, struct user *user); /* by name */

/* Applies one rule as ACL SETUSER takes it; NULL, or why it is none: redis_acl_rules.c */
const char *acl_apply(struct user *user, struct slice rule);
struct user *acl_copy(const struct user *user, struct slice name);
void acl_free(struct user *user);

#endif
