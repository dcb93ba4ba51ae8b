/*
 * Replies to what weir itself asks servers and sentinels: collected until they are whole, parsed, and judged.
 *
 * weir's own scanner finds where a reply ends before hiredis' reader sees it, because that reader allocates what a
 * length announces. Safe on any bytes. Any thread.
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

#define CONTROL_REPLY_MAX (4 << 20) /* bytes of one reply: twenty times Redis 7's answer to COMMAND */
#define CONTROL_COMMANDS_MAX 4096   /* of one server: ten times as many as Redis 7 has. Making the table is quadratic */

struct redisReply;

/* A reply that is being received. Zeroed: nothing has come. control_inbox_fini frees. */
struct control_inbox {
    struct reply_scan scan;
    struct bytes bytes;
    size_t most; /* bytes of one reply; 0: CONTROL_REPLY_MAX */
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

/*
 * ---- sentinels ----
 *
 * What sentinels say, in RESP3 or RESP2. Own code, because the hiredis that weir is built with
 * knows no RESP3. Nothing is allocated but the bytes of one reply, at most SENTINEL_REPLY_MAX; a
 * value is at most SENTINEL_DEPTH deep.
 */

#define SENTINEL_REPLY_MAX 65536 /* bytes of one reply: a hundred replicas with all their fields */
#define SENTINEL_DEPTH 8         /* a list of maps is 3 deep */

enum said_kind {
    SAID_NIL,
    SAID_ERROR,
    SAID_TEXT, /* any value of one piece: a string, a number */
    SAID_LIST, /* an array, a set, or a map of names and values in turn */
    SAID_PUSH, /* as a list */
};

/* One value. Its parts point into the frame. */
struct said {
    enum said_kind kind;
    struct slice text;   /* of an error or a text */
    struct slice inside; /* the elements of a list, for said_next */
};

/*
 * The value in front of *rest, which then begins behind it. False: there is none, or it cannot be
 * read.
 */
__attribute__((warn_unused_result)) bool said_next(struct slice *rest, struct said *value);

/* The text under this name in a list of names and values. False: there is none. */
__attribute__((warn_unused_result)) bool said_field(const struct said *list, const char *name, struct slice *text);

/* The first `n` texts of a list. False: it has fewer elements, or one of them is no text. */
__attribute__((warn_unused_result)) bool said_texts(const struct said *list, struct slice *texts, size_t n);

#define SENTINEL_HOST 256 /* room for a name or the digits of an address */
#define SENTINEL_RUN_ID 64

/* A server, or another sentinel, that a sentinel tells of. */
struct sentinel_server {
    char host[SENTINEL_HOST];
    uint16_t port;
    uint64_t epoch;               /* its config-epoch; 0: not told */
    char run_id[SENTINEL_RUN_ID]; /* "": not told */
    bool is_failing_over;         /* a failover of this master is under way, so that another may be the master */
    bool is_down;                 /* the sentinel does not reach it, or has lost its link to the master */
};

/* Two texts as a host and a port. False: port 0, no host, or bytes that a host cannot have. */
__attribute__((warn_unused_result)) bool sentinel_read_address(struct slice host, struct slice port,
                                                               struct sentinel_server *server);

/*
 * An answer to SENTINEL MASTER, or an element of one to SENTINEL REPLICAS or SENTINELS. False: it
 * is none.
 */
__attribute__((warn_unused_result)) bool sentinel_read_server(const struct said *list, struct sentinel_server *server);

/* True if it is a message about this channel: *payload is what was published. */
__attribute__((warn_unused_result)) bool sentinel_read_message(const struct said *push, const char *channel,
                                                               struct slice *payload);

/* What an error says of the sentinel. */
enum sentinel_refusal {
    SENTINEL_WANTS_LOGIN,   /* NOAUTH */
    SENTINEL_REFUSES_LOGIN, /* WRONGPASS, or AUTH without a password being set */
    SENTINEL_FORBIDS,       /* NOPERM */
    SENTINEL_KNOWS_NO_NAME, /* no such master */
    SENTINEL_UNKNOWN,       /* an unknown command, or NOPROTO: too old, or no sentinel */
    SENTINEL_OTHER,
};

enum sentinel_refusal sentinel_judge_error(struct slice error);

/* ---- the answer to the question of login/auth_probe.h: are connections that do not log in served? ---- */

enum auth_probe_verdict {
    AUTH_PROBE_MORE,       /* the answer goes on */
    AUTH_PROBE_SERVED,     /* they are */
    AUTH_PROBE_NEEDS_AUTH, /* they are not: -NOAUTH */
    AUTH_PROBE_UNKNOWN,    /* it does not say */
};

/* Zeroed: nothing has come. */
struct auth_probe_answer {
    struct reply_scan scan;
    struct glimpse glimpse;
};

/* The next bytes, which may be any. After anything but AUTH_PROBE_MORE the answer is over. */
enum auth_probe_verdict auth_probe_answer_take(struct auth_probe_answer *answer, const char *data, size_t n);

#endif
