/*
 * Replies of servers and sentinels to weir's own commands: collected until whole, parsed, and
 * judged.
 *
 * weir's own scanner finds the end of a reply before hiredis' reader sees the reply: hiredis'
 * reader allocates as many bytes as a length field announces. The functions are safe on any bytes.
 * Any thread.
 */
#ifndef WEIR_UPSTREAM_CONTROL_REPLY_H
#define WEIR_UPSTREAM_CONTROL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "limit/command/command.h"
#include "resp/glimpse.h"
#include "resp/scan.h"
#include "upstream/node/node_role.h"

/* chosen: bytes of one reply, twenty times Redis 7's answer to COMMAND */
#define CONTROL_REPLY_MAX (4 << 20)
/*
 * chosen: commands of one server, ten times as many as Redis 7 has; the time to build the table is
 * quadratic in this number
 */
#define CONTROL_COMMANDS_MAX 4096

struct redisReply;

/* A reply being received. Zeroed: nothing has arrived. control_inbox_fini frees the memory. */
struct control_inbox {
    struct reply_scan scan;
    struct bytes bytes;
    size_t most; /* bytes of one reply; 0: CONTROL_REPLY_MAX */
};

/*
 * Like reply_scan; also SCAN_BAD if the reply is too long. After SCAN_FRAME *frame holds the whole
 * reply until the next call.
 */
__attribute__((warn_unused_result)) enum scan_result control_inbox_take(struct control_inbox *inbox,
                                                                        const char *data, size_t n,
                                                                        size_t *used,
                                                                        struct slice *frame);
void control_inbox_fini(struct control_inbox *inbox);

/*
 * Parse a whole frame; the caller frees the result with control_reply_free. NULL: hiredis cannot
 * parse the frame.
 */
struct redisReply *control_read(struct slice frame);
void control_reply_free(struct redisReply *reply);

/* The verdict on a node, from one answer. */
enum control_verdict {
    CONTROL_GOOD,
    CONTROL_NOAUTH, /* a login is required first */
    CONTROL_DENIED, /* weir may not use this command: NOPERM, an unknown command, a refused login */
    CONTROL_BUSY,   /* a script is running, and Redis runs nothing else meanwhile */
    CONTROL_UNFIT,  /* the node cannot be used now */
    CONTROL_BARRED, /* the node can never be used: weir does not support this server */
};

/* The kind of node that the configuration expects. */
enum control_form {
    CONTROL_OF_SERVER,  /* a server outside any cluster */
    CONTROL_OF_CLUSTER, /* a node of a cluster */
};

/*
 * Each function judges the answer to one command: HELLO, AUTH, INFO server, COMMAND (an answer that
 * is no table) or PING. After UNFIT or BARRED *why is constant, or points into the reply.
 */
enum control_verdict control_judge_hello(const struct redisReply *reply, enum control_form form,
                                         const char **why);
enum control_verdict control_judge_auth(const struct redisReply *reply, const char **why);
enum control_verdict control_judge_info(const struct redisReply *reply, enum control_form form,
                                        const char **why);
enum control_verdict control_judge_command(const struct redisReply *reply, const char **why);
enum control_verdict control_judge_ping(const struct redisReply *reply, const char **why);

/*
 * Judge the answer to INFO or CLUSTER NODES. GOOD: *text is the text of the answer. Otherwise *text
 * is the error, or a reason. *text is constant, or points into the frame.
 */
enum control_verdict control_judge_text(struct slice frame, struct slice *text);

/* The role of the server in the answer to HELLO. */
enum node_role control_read_role(const struct redisReply *reply);

/*
 * True if the error says that the server serves no client now: it is loading its data, or has no
 * master.
 */
bool control_is_idle(const struct redisReply *reply);

/* True if the reply is an error or a string that contains `text`. */
bool control_repeats(const struct redisReply *reply, struct slice text);

/* True if the error says that the server serves no client now, or rejects this connection. */
bool control_is_shut(const struct redisReply *reply);

/* maxclients of the node, from INFO clients; 0: unknown. */
uint32_t control_read_maxclients(const struct redisReply *reply);

/*
 * Returns the table from an answer to COMMAND, with one reference; NULL: the reply is no table of
 * commands.
 */
struct command_table *control_read_commands(const struct redisReply *reply);

/*
 * ---- sentinels ----
 *
 * Replies of sentinels, in RESP3 or RESP2. weir parses these replies itself, because the hiredis
 * that weir is built with does not support RESP3. Nothing is allocated except the bytes of one
 * reply, at most SENTINEL_REPLY_MAX. Values nest at most SENTINEL_DEPTH deep.
 */

/* chosen: bytes of one reply, a hundred replicas with all their fields */
#define SENTINEL_REPLY_MAX 65536
#define SENTINEL_DEPTH 8 /* chosen: a list of maps is 3 deep */

enum said_kind {
    SAID_NIL,
    SAID_ERROR,
    SAID_TEXT, /* a scalar: a string, a number */
    SAID_LIST, /* an array, a set, or a map of alternating names and values */
    SAID_PUSH, /* a push; has elements, like a list */
};

/* One value. The slices point into the frame. */
struct said {
    enum said_kind kind;
    struct slice text;   /* of an error or a text */
    struct slice inside; /* the elements of a list, for said_next */
};

/*
 * Take the first value of *rest, and advance *rest behind the value. False: *rest is empty, or the
 * value cannot be parsed.
 */
__attribute__((warn_unused_result)) bool said_next(struct slice *rest, struct said *value);

/*
 * Finds the text under `name` in a list of names and values. False: the list has no text under
 * `name`.
 */
__attribute__((warn_unused_result)) bool said_field(const struct said *list, const char *name,
                                                    struct slice *text);

/*
 * Reads the first `n` texts of a list. False: the list has fewer elements, or an element is no
 * text.
 */
__attribute__((warn_unused_result)) bool said_texts(const struct said *list, struct slice *texts,
                                                    size_t n);

#define SENTINEL_HOST 256 /* room for a host name or an IP address */
#define SENTINEL_RUN_ID 64

/* A server, or another sentinel, as reported by a sentinel. */
struct sentinel_server {
    char host[SENTINEL_HOST];
    uint16_t port;
    uint64_t epoch;               /* config-epoch of the server; 0: unknown */
    char run_id[SENTINEL_RUN_ID]; /* "": unknown */
    /* a failover of this master is in progress: another server may be the master */
    bool is_failing_over;
    /* the sentinel cannot reach the server, or has lost its link to the server */
    bool is_down;
};

/* Parse two texts as host and port. False: port 0, no host, or invalid bytes in the host. */
__attribute__((warn_unused_result)) bool sentinel_read_address(struct slice host, struct slice port,
                                                               struct sentinel_server *server);

/*
 * Parse an answer to SENTINEL MASTER, or an element of an answer to SENTINEL REPLICAS or SENTINELS.
 * False: `list` has another form.
 */
__attribute__((warn_unused_result)) bool sentinel_read_server(const struct said *list,
                                                              struct sentinel_server *server);

/* True if `push` is a message on `channel`: *payload is the published text. */
__attribute__((warn_unused_result)) bool sentinel_read_message(const struct said *push,
                                                               const char *channel,
                                                               struct slice *payload);

/* The meaning of a sentinel's error. */
enum sentinel_refusal {
    SENTINEL_WANTS_LOGIN,   /* NOAUTH */
    SENTINEL_REFUSES_LOGIN, /* WRONGPASS, or AUTH although no password is set */
    SENTINEL_FORBIDS,       /* NOPERM */
    SENTINEL_KNOWS_NO_NAME, /* no such master */
    SENTINEL_UNKNOWN,       /* an unknown command, or NOPROTO: too old, or no sentinel */
    SENTINEL_OTHER,
};

enum sentinel_refusal sentinel_judge_error(struct slice error);

/* ---- the answer to login/auth_probe.h: whether connections without a login are served ---- */

enum auth_probe_verdict {
    AUTH_PROBE_MORE,       /* the answer continues */
    AUTH_PROBE_SERVED,     /* served */
    AUTH_PROBE_NEEDS_AUTH, /* not served: -NOAUTH */
    AUTH_PROBE_UNKNOWN,    /* no usable answer */
};

/* Zeroed: nothing has arrived. */
struct auth_probe_answer {
    struct reply_scan scan;
    struct glimpse glimpse;
};

/*
 * Take the next bytes of the answer. Any bytes are safe. Any result but AUTH_PROBE_MORE ends the
 * answer.
 */
enum auth_probe_verdict auth_probe_answer_take(struct auth_probe_answer *answer, const char *data,
                                               size_t n);

#endif
