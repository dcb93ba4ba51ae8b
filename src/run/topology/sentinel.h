/*
 * One sentinel, and weir's connection to it: which server the sentinel names as the master.
 *
 * The sentinel's name is resolved, the addresses are dialled one after another, and a lost
 * connection is retried with growing intervals. weir logs in if there is a password. HELLO 3
 * follows (an old sentinel answers in RESP2, without subscription), then a subscription to
 * +switch-master. SENTINEL MASTER is asked at the pace that the owner sets. SENTINEL SENTINELS and
 * REPLICAS are asked every 10 s, and when the named server changes.
 *
 * One question at a time, each for at most 300 ms, and never more than run/topology/question_pace.h
 * allows. Main thread.
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

/* Settings of all sentinels. */
struct sentinels_settings {
    struct upstream *upstream;       /* for TLS and connect-timeout; must outlive the sentinels */
    const char *master_name;         /* must outlive the sentinels */
    const struct address *addresses; /* as configured; must outlive the sentinels */
    size_t n_addresses;
    const struct dialling *dialling; /* must outlive the sentinels */
    uint64_t resolve_ns;             /* interval of name lookups; 0: only after an event */
    const char *user;                /* must outlive the sentinels; NULL: only a password */
    /* path of the password file; must outlive the sentinels; NULL: none */
    const char *password_path;
    bool asks_replicas;
};

struct sentinel_ops {
    /* sentinel_word has changed. The sentinel may not be closed from within the call. */
    void (*on_word)(void *arg);
    /* The sentinel has published that another server is the master. */
    void (*on_switch)(void *arg);
};

struct sentinel_settings {
    const struct sentinels_settings *common; /* must outlive the sentinel */
    const char *host;                        /* copied */
    uint16_t port;
    const char *password; /* valid until sentinel_set_password; NULL: none */
};

/* Begins to connect. Out of memory ends the process. */
struct sentinel *sentinel_open(struct loop *loop, const struct sentinel_settings *settings,
                               const struct sentinel_ops *ops, void *arg);

const struct sentinel_word *sentinel_word(const struct sentinel *sentinel);

/* CLAIM_FRESH if the last claim is still valid. */
enum mastership_age sentinel_age(const struct sentinel *sentinel);

/* Returns "10.0.0.1:26379", as configured or announced. */
const char *sentinel_text(const struct sentinel *sentinel);

void sentinel_set_pace(struct sentinel *sentinel, enum mastership_pace pace);

/* Asks for the master now, as far as the budget allows. */
void sentinel_ask(struct sentinel *sentinel);

/*
 * is_twin: another connection leads to this sentinel; no question is sent on this connection while
 * the other connection answers.
 */
void sentinel_set_twin(struct sentinel *sentinel, bool is_twin);

/*
 * Sets the password of the next login. A login that was refused, or lacked a password, is retried
 * now. The password must stay valid until the next call.
 */
void sentinel_set_password(struct sentinel *sentinel, const char *password);

/* Asynchronous; frees itself. No callback comes after this call. */
void sentinel_close(struct sentinel *sentinel);

#endif
