/*
 * One sentinel, and weir's connection to it: which server it names as the master.
 *
 * Its name is resolved, its addresses are dialled one after another, and a lost connection is made
 * again with growing pauses. On it weir logs in where there is a password, says HELLO 3 (an old
 * sentinel answers in RESP2, without subscription), subscribes to +switch-master, and asks SENTINEL
 * MASTER at the pace that its owner sets. SENTINEL SENTINELS and REPLICAS are asked every 10 s and
 * once another server is named.
 *
 * One question at a time, each for at most 300 ms, and never more of them than
 * run/topology/question_pace.h allows, whatever the sentinel does. Main thread.
 */
#ifndef WEIR_RUN_SENTINEL_H
#define WEIR_RUN_SENTINEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "run/config/address.h"
#include "run/config/dialling.h"
#include "run/topology/sentinel_word.h"
#include "upstream/upstream.h"

struct sentinel;

/* What all sentinels have in common. */
struct sentinels_settings {
    struct upstream *upstream;       /* for TLS and connect-timeout; lives longer */
    const char *master_name;         /* lives longer */
    const struct address *addresses; /* as configured; live longer */
    size_t n_addresses;
    const struct dialling *dialling; /* lives longer */
    uint64_t resolve_ns;             /* how often names are looked up; 0: only when there is a reason to */
    const char *user;                /* lives longer; NULL: only a password */
    const char *password_path;       /* the file that has the password; lives longer; NULL: none */
    bool asks_replicas;
};

struct sentinel_ops {
    /* sentinel_word has changed. The sentinel is not to be closed from within. */
    void (*on_word)(void *arg);
    /* It has published that another server is the master. */
    void (*on_switch)(void *arg);
};

struct sentinel_settings {
    const struct sentinels_settings *common; /* lives longer */
    const char *host;                        /* copied */
    uint16_t port;
    const char *password; /* lives until sentinel_set_password; NULL: none */
};

/* Begins to connect. Out of memory ends the process. */
struct sentinel *sentinel_open(struct loop *loop, const struct sentinel_settings *settings,
                               const struct sentinel_ops *ops, void *arg);

const struct sentinel_word *sentinel_word(const struct sentinel *sentinel);

/* Does what it named last still hold? */
enum mastership_age sentinel_age(const struct sentinel *sentinel);

/* "10.0.0.1:26379", as configured or announced. */
const char *sentinel_text(const struct sentinel *sentinel);

void sentinel_set_pace(struct sentinel *sentinel, enum mastership_pace pace);

/* Ask now, as far as there is budget. */
void sentinel_ask(struct sentinel *sentinel);

/* It is connected a second time, as another: nothing is asked here as long as that one answers. */
void sentinel_set_twin(struct sentinel *sentinel, bool is_twin);

/*
 * For the next login; where the last was refused, or none was known, that is now. Lives until the
 * next call.
 */
void sentinel_set_password(struct sentinel *sentinel, const char *password);

/* Asynchronous; frees itself. No callback comes after it. */
void sentinel_close(struct sentinel *sentinel);

#endif
