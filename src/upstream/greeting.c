#include "upstream/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp/emit.h"

#define MAX_WORDS 5

enum step { STEP_RESET, STEP_SELECT, STEP_LOGIN, STEP_HELLO, STEP_SELECT_AGAIN, STEP_PING };

struct writer {
    struct greeting *greeting;
    char *at;
    size_t len;
};

static void say(struct writer *w, enum step step, const struct slice *words, size_t n)
{
    w->len += emit_array(w->at + w->len, words, n);
    w->greeting->steps[w->greeting->count++] = (uint8_t)step;
}

static void say_select(struct writer *w, enum step step, uint32_t database)
{
    char number[16];
    snprintf(number, sizeof number, "%u", database);
    const struct slice words[] = {SLICE("SELECT"), slice_str(number)};
    say(w, step, words, 2);
}

/* HELLO logs in too, and unlike SELECT no ACL can forbid either. */
static void say_who(struct writer *w, const struct lane_key *key)
{
    const struct login *login = key->login;
    struct slice user = login != NULL ? login_user(login) : SLICE("");
    struct slice password = login != NULL ? login_password(login) : SLICE("");
    const struct slice hello[MAX_WORDS] = {SLICE("HELLO"), SLICE("3"), SLICE("AUTH"), user, password};
    const struct slice auth[] = {SLICE("AUTH"), user, password};
    if (key->protocol == 3)
        say(w, login != NULL ? STEP_LOGIN : STEP_HELLO, hello, login != NULL ? 5 : 2);
    else if (login != NULL)
        say(w, STEP_LOGIN, auth, 3);
}

/*
 * A client may have chosen its database before it became a user who may not: so it is chosen before and after logging
 * in, and one of the two must work.
 */
char *greeting_new(const struct lane_key *key, bool is_used, struct greeting *greeting, size_t *n)
{
    size_t secrets = key->login != NULL ? key->login->user_len + key->login->password_len : 0;
    *greeting = (struct greeting){0};
    struct writer w = {greeting, malloc(secrets + 512), 0};
    if (w.at == NULL)
        return NULL;
    const struct slice reset[] = {SLICE("RESET")};
    if (is_used)
        say(&w, STEP_RESET, reset, 1);
    if (key->database != 0)
        say_select(&w, STEP_SELECT, key->database);
    say_who(&w, key);
    if (key->database != 0 && key->login != NULL)
        say_select(&w, STEP_SELECT_AGAIN, key->database);
    const struct slice ping[] = {SLICE("PING")};
    say(&w, STEP_PING, ping, 1);
    *n = w.len;
    return w.at;
}

bool greeting_turns_away(const struct glimpse *answer)
{
    return glimpse_starts(answer, SLICE("-ERR max number of clients")) || glimpse_starts(answer, SLICE("-DENIED"));
}

static enum greeting_verdict judge_ping(const struct glimpse *answer)
{
    if (glimpse_starts(answer, SLICE("-NOAUTH")))
        return GREETING_NEEDS_AUTH;
    /* LOADING, MISCONF, MASTERDOWN, BUSY, NOPERM for PING: the server talks to us, and will tell the client the same. */
    return GREETING_GOOD;
}

enum greeting_verdict greeting_judge(struct greeting *greeting, const struct glimpse *answer)
{
    enum step step = (enum step)greeting->steps[greeting->at++];
    bool is_ok = glimpse_type(answer) != '-';
    if (greeting_turns_away(answer))
        return GREETING_TURNED_AWAY;
    switch (step) {
    case STEP_RESET:
        return glimpse_starts(answer, SLICE("+RESET")) ? GREETING_GOOD : GREETING_NO_RESET;
    case STEP_SELECT:
        greeting->is_selected = is_ok;
        return is_ok || greeting->steps[greeting->at] == STEP_LOGIN ? GREETING_GOOD : GREETING_REFUSED;
    case STEP_SELECT_AGAIN:
        return is_ok || greeting->is_selected ? GREETING_GOOD : GREETING_REFUSED;
    case STEP_LOGIN:
        if (is_ok)
            return GREETING_GOOD;
        return glimpse_starts(answer, SLICE("-WRONGPASS")) ? GREETING_LOGIN_REFUSED : GREETING_REFUSED;
    case STEP_HELLO:
        return is_ok ? GREETING_GOOD : GREETING_REFUSED;
    case STEP_PING:
        break;
    }
    return judge_ping(answer);
}
