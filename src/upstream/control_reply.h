/*
 * What the control lane is told: taken in whole, read, and judged. Whatever bytes they are, each is judged or is none.
 *
 * The scanner finds where a reply ends before hiredis' reader sees it: that one takes a declared length at its word.
 * Any thread.
 */
#ifndef WEIR_UPSTREAM_CONTROL_REPLY_H
#define WEIR_UPSTREAM_CONTROL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "limit/command.h"
#include "resp/scan.h"

#define CONTROL_REPLY_MAX (4 << 20) /* twenty times what Redis 7 says of its commands */
#define CONTROL_COMMANDS_MAX 4096   /* ten times as many as it has: the table looks each up beside all others */

struct redisReply;

/* One that is coming in. Zeroed; control_inbox_fini frees. */
struct control_inbox {
    struct reply_scan scan;
    struct bytes bytes;
};

/* As reply_scan; also SCAN_BAD when it is too long. After SCAN_FRAME the whole is in *frame until the next call. */
__attribute__((warn_unused_result)) enum scan_result control_inbox_take(struct control_inbox *inbox, const char *data,
                                                                        size_t n, size_t *used, struct slice *frame);
void control_inbox_fini(struct control_inbox *inbox);

/* A whole frame, to be freed by control_reply_free. NULL: the reader does not know what it is. */
struct redisReply *control_read(struct slice frame);
void control_reply_free(struct redisReply *reply);

/* Each NULL, or why it cannot be served; the text is a constant or the reply's own. */
const char *control_judge_hello(const struct redisReply *reply, bool *needs_auth);
const char *control_judge_auth(const struct redisReply *reply);
const char *control_judge_info(const struct redisReply *reply, bool *is_barred);

/* How many connections it serves at a time, from INFO clients; 0: it does not say. */
uint32_t control_read_maxclients(const struct redisReply *reply);

/* What COMMAND lists; NULL: it does not. The caller owns the reference. */
struct command_table *control_read_commands(const struct redisReply *reply);

#endif
