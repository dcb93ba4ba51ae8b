/*
 * An admin command: a client's command that concerns the whole process (LIMIT SET, LIMIT RELOAD
 * ...). The client's worker makes the command. The main thread carries out the command. The command
 * returns to the worker with its result when every worker has the change.
 *
 * Ownership moves with the pointer. The worker owns the command first, then the main thread, then
 * the worker again.
 */
#ifndef WEIR_FRONT_ADMIN_COMMAND_H
#define WEIR_FRONT_ADMIN_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "limit/figures/top.h"
#include "resp/build.h"

enum admin_kind {
    ADMIN_RELOAD,
    ADMIN_SET,
    ADMIN_SET_LIMIT,
    ADMIN_SET_KEY,
    ADMIN_UNSET,
    ADMIN_UNSET_KEY,
    ADMIN_MODE,
    ADMIN_DIFF,
    ADMIN_BLOCK,
    ADMIN_UNBLOCK,
    ADMIN_CLIENTS, /* passes through all workers: front/commands/admin_commands.h */
    ADMIN_KICK,    /* passes through all workers, as ADMIN_CLIENTS does */
    ADMIN_SUGGEST,
    ADMIN_INFO,
    ADMIN_LIST,
    ADMIN_TOP,
    ADMIN_BLOCKS,
    ADMIN_UPSTREAM,
};

/* Contents of a report. */
struct report_wanted {
    bool is_refusing;    /* ADMIN_LIST: only limits that refuse now */
    enum top_by by;      /* ADMIN_TOP; TOP_BY_COUNT: the report is about keys of named limits */
    size_t n;            /* ADMIN_TOP, ADMIN_BLOCKS: number of rows */
    unsigned percentile; /* ADMIN_SUGGEST: see suggestion_make */
};

/*
 * A line of the configuration with a running value that differs from the file. `running` or `file`
 * is "" if the running configuration or the file lacks the line.
 */
struct difference {
    char *section; /* for example "policy free" or "weir" */
    char *what;
    char *running;
    char *file;
};

#define ADMIN_BY_ROOM 256

struct admin_command {
    struct list in_queue; /* link in the queue of the current owner */
    enum admin_kind kind;
    /* the operator that gave the command, as printed by session_print_operator; "": a signal */
    char by[ADMIN_BY_ROOM];
    /*
     * ADMIN_SET, ADMIN_UNSET: the policy. ADMIN_SET_LIMIT, ADMIN_SET_KEY, ADMIN_UNSET_KEY: the
     * limit's name. ADMIN_SUGGEST: the policy, NULL for all.
     */
    char *policy;
    /*
     * ADMIN_SET, ADMIN_UNSET: the key; ADMIN_SUGGEST: the class; ADMIN_INFO: the section; NULL: all
     */
    char *what;
    /*
     * ADMIN_SET: the value of the line. ADMIN_SET_LIMIT, ADMIN_SET_KEY: the line. ADMIN_MODE:
     * enforce or shadow. ADMIN_BLOCK: the reason, NULL for none. ADMIN_SUGGEST: the excluded
     * subjects, separated by blanks, NULL for none.
     */
    char *expression;
    /*
     * ADMIN_SET_KEY, ADMIN_UNSET_KEY: the key, any bytes. ADMIN_BLOCK, ADMIN_UNBLOCK, ADMIN_KICK:
     * the subject's name. ADMIN_SET, ADMIN_UNSET, ADMIN_CLIENTS: the subject's name, NULL for all.
     * ADMIN_LIST: the pattern.
     */
    char *key;
    size_t key_len;
    /* ADMIN_SET, ADMIN_SET_KEY, ADMIN_BLOCK: the duration as written; NULL: until revoked */
    char *lives;
    /*
     * end of the duration (base/clock.h), set for a command given to the previous process; 0: see
     * `lives`
     */
    uint64_t until_ns;
    /* the command was valid in the previous process, and is not checked for an effect again */
    bool is_handed_over;
    void *worker; /* the worker of `client`; used by the main thread */
    void *client; /* NULL: the client is closed */

    bool is_starved; /* result: out of memory, and the command was not carried out */
    /* result: why the command was not carried out; NULL: the command was carried out */
    char *error;
    /* ADMIN_CLIENTS, ADMIN_KICK: number of workers that have received the command */
    unsigned visited;
    /* true while the command passes from worker to worker; each worker does its own part */
    bool is_on_its_round;
    size_t n_rows; /* ADMIN_CLIENTS: clients in `rows`; ADMIN_KICK: closed clients */
    size_t n_more; /* ADMIN_CLIENTS: matching clients that `rows` omits */
    /* ADMIN_CLIENTS: rows; reports, ADMIN_DIFF and ADMIN_UPSTREAM: the whole reply */
    struct build rows;
    struct report_wanted wanted; /* ADMIN_LIST, ADMIN_TOP, ADMIN_BLOCKS, ADMIN_SUGGEST */
    struct difference *differences;
    size_t n_differences;
    char *lines; /* ADMIN_SUGGEST: lines, each with a line feed; not NUL-terminated */
    size_t lines_len;
    /*
     * ADMIN_INFO: the text, not NUL-terminated. ADMIN_RELOAD: the changes that need a restart, NULL
     * for none.
     */
    char *text;
    size_t text_len;
};

static inline bool admin_command_goes_round(const struct admin_command *admin_command)
{
    return admin_command->kind == ADMIN_CLIENTS || admin_command->kind == ADMIN_KICK;
}

/*
 * Returns a new admin command, zeroed except for its kind. NULL if out of memory. The caller owns
 * the command.
 */
struct admin_command *admin_command_new(enum admin_kind kind);
void admin_command_free(struct admin_command *admin_command); /* safe on NULL */

#endif
