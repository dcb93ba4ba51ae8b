/*
 * Replies on the control lane (control.h): collected until they are whole, parsed, and judged. Safe on any bytes.
 *
 * weir's own scanner finds where a reply ends before hiredis' reader sees it, because that reader allocates what a
 * length announces. Any thread.
 */
#ifndef WEIR_UPSTREAM_CONTROL_REPLY_H
#define WEIR_UPSTREAM_CONTROL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "limit/command/command.h"
#include "resp/scan.h"
#include "upstream/node/node_role.h"

#define CONTROL_REPLY_MAX (4 << 20) /* bytes of one reply: twenty times Redis 7's answer to COMMAND */
#define CONTROL_COMMANDS_MAX 4096   /* of one server: ten times as many as Redis 7 has. Making the table is quadratic */

struct redisReply;

/* A reply that is being received. Zeroed: nothing has come. control_inbox_fini frees. */
struct control_inbox {
    struct reply_scan scan;
    struct bytes bytes;
};

/*
 * As reply_scan; also SCAN_BAD when it is too long. After SCAN_FRAME the whole reply is in *frame until the next call.
 */
__attribute__((warn_unused_result)) enum scan_result control_inbox_take(struct control_inbox *inbox, const char *data,
                                                                        size_t n, size_t *used, struct slice *frame);
void control_inbox_fini(struct control_inbox *inbox);

/* Parse a whole frame; to be freed by control_reply_free. NULL: hiredis cannot parse it. */
struct redisReply *control_read(struct slice frame);
void control_reply_free(struct redisReply *reply);

/* What an answer says of its node. */
enum control_verdict {
    CONTROL_GOOD,
    CONTROL_NOAUTH, /* it wants a login first */
    CONTROL_DENIED, /* it does not let weir ask this: NOPERM, an unknown command, a login that it does not accept */
    CONTROL_BUSY,   /* it runs a script, and nothing else meanwhile */
    CONTROL_UNFIT,  /* it cannot be used now */
    CONTROL_BARRED, /* it never can be: it is no server that weir supports */
};

/* What the configuration takes the node for. */
enum control_form {
    CONTROL_OF_SERVER,  /* a server that is in no cluster */
    CONTROL_OF_CLUSTER, /* a node of a cluster */
};

/*
 * Judge the answer to HELLO, AUTH, INFO server, COMMAND where it is no table, PING. UNFIT, BARRED: *why is constant
 * or a part of the reply.
 */
enum control_verdict control_judge_hello(const struct redisReply *reply, enum control_form form, const char **why);
enum control_verdict control_judge_auth(const struct redisReply *reply, const char **why);
enum control_verdict control_judge_info(const struct redisReply *reply, enum control_form form, const char **why);
enum control_verdict control_judge_command(const struct redisReply *reply, const char **why);
enum control_verdict control_judge_ping(const struct redisReply *reply, const char **why);

/* Of INFO and CLUSTER NODES. GOOD: *text is the text; else the error, or what there is to say: constant, or in the frame. */
enum control_verdict control_judge_text(struct slice frame, struct slice *text);

/* What the answer to HELLO says that the server is. */
enum node_role control_read_role(const struct redisReply *reply);

/* True if it is an error that says that the server serves no client now: it loads its data, or has no master. */
bool control_is_idle(const struct redisReply *reply);

/* True if the text is a part of an error or of a string. */
bool control_repeats(const struct redisReply *reply, struct slice text);

/* True if it is an error that says that the server serves no client now, or not this connection. */
bool control_is_shut(const struct redisReply *reply);

/* How many connections the node takes, from INFO clients; 0: it does not say. */
uint32_t control_read_maxclients(const struct redisReply *reply);

/* The table of COMMAND's answer, one reference; NULL: it is no such answer. */
struct command_table *control_read_commands(const struct redisReply *reply);

#endif
