#include "upstream/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp/emit.h"

#define MAX_WORDS 3

struct writer {
    char *at;
    size_t len;
    uint8_t requests;
};

static void say(struct writer *w, const struct slice *words, size_t n)
{
    w->len += emit_array(w->at + w->len, words, n);
    w->requests++;
}

char *greeting_new(const struct lane_key *key, size_t *n, uint8_t *replies)
{
    const struct login *login = key->login;
    size_t secrets = login != NULL ? login->user_len + login->password_len : 0;
    struct writer w = {malloc(secrets + 512), 0, 0};
    if (w.at == NULL)
        return NULL;
    if (login != NULL) {
        struct slice auth[] = {SLICE("AUTH"), login_user(login), login_password(login)};
        say(&w, auth, MAX_WORDS);
    }
    if (key->protocol == 3) {
        struct slice hello[] = {SLICE("HELLO"), SLICE("3")};
        say(&w, hello, 2);
    }
    if (key->database != 0) {
        char number[16];
        snprintf(number, sizeof number, "%u", key->database);
        struct slice chosen[] = {SLICE("SELECT"), slice_str(number)};
        say(&w, chosen, 2);
    }
    struct slice ping[] = {SLICE("PING")};
    say(&w, ping, 1);
    *n = w.len;
    *replies = w.requests;
    return w.at;
}

enum greeting_verdict greeting_judge(const struct glimpse *answer, uint8_t left)
{
    if (glimpse_type(answer) != '-')
        return GREETING_GOOD;
    if (left > 0)
        return GREETING_REFUSED;
    if (glimpse_starts(answer, SLICE("-NOAUTH")))
        return GREETING_NEEDS_AUTH;
    /* -ERR max number of clients reached, -DENIED ... protected mode: the connection is as good as closed. */
    if (glimpse_starts(answer, SLICE("-ERR max number of clients")) || glimpse_starts(answer, SLICE("-DENIED")))
        return GREETING_REFUSED;
    return GREETING_GOOD; /* LOADING, MISCONF, MASTERDOWN, BUSY, NOPERM for PING: the server talks to us */
}
