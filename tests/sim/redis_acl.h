/* Users and logins. Every user may run every command: permissions are not modelled. */
#ifndef WEIR_SIM_REDIS_ACL_H
#define WEIR_SIM_REDIS_ACL_H

#include "tests/sim/redis_state.h"

void acl_init(struct redis *redis);
void acl_fini(struct redis *redis);

/* True if the connection has not logged in and a password is required. */
bool acl_is_stranger(const struct redis_conn *conn);
void acl_reset(struct redis_conn *conn); /* sets the default user */

/* False: the password is wrong, or there is no enabled user of that name. */
bool acl_login(struct redis_conn *conn, struct slice name, struct slice password);
void acl_reply_wrong(struct redis_conn *conn); /* replies that the login failed */
void acl_set_requirepass(struct redis *redis, struct slice password);

struct user *acl_find(const struct redis *redis, struct slice name);
void acl_insert(struct redis *redis, struct user *user); /* sorted by name */

/* Applies one rule of ACL SETUSER: redis_acl_rules.c. NULL, or the error. */
const char *acl_apply(struct user *user, struct slice rule);
struct user *acl_copy(const struct user *user, struct slice name);
void acl_free(struct user *user);

#endif
