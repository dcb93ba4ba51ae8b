#include "upstream/lane/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "resp/emit.h"
#include "upstream/lane/own_words.h"

#define ROOM 512 /* bytes for the greeting without a login: twice the bytes needed */

enum step {
    STEP_RESET,
    STEP_OWN_LOGIN,
    STEP_WRITE,
    STEP_SELECT,
    STEP_LOGIN,
    STEP_SELECT_AGAIN,
    STEP_HELLO,
    STEP_READONLY,
    STEP_NONCE,
};

/* ---- requests ---- */

static void greeting_add(struct greeting *greeting, enum step step)
{
    greeting->steps[greeting->count++] = (uint8_t)step;
}

/*
 * SELECT is sent before and after the login, and one SELECT must succeed. A client may have chosen
 * its database before it became a user without the right to SELECT. HELLO needs no rights, and its
 * error says whether a password is required. Only connections without a login need that answer.
 */
void greeting_init(struct greeting *greeting, const struct lane_key *key, enum greeting_kind kind,
                   const struct greeting_cover *cover)
{
    *greeting = (struct greeting){.kind = (uint8_t)kind, .is_asking = key->protocol != 3};
    bool is_again = greeting_is_again(kind);
    if (is_again)
        greeting_add(greeting, STEP_RESET);
    if (cover != NULL && cover->key != NULL) {
        greeting->cover = *cover;
        if (cover->login != NULL && key->login != NULL)
            greeting_add(greeting, STEP_OWN_LOGIN);
        greeting_add(greeting, STEP_WRITE);
    }
    if (key->database != 0)
        greeting_add(greeting, STEP_SELECT);
    if (key->login != NULL)
        greeting_add(greeting, STEP_LOGIN);
    if (key->database != 0 && key->login != NULL)
        greeting_add(greeting, STEP_SELECT_AGAIN);
    bool is_stranger = key->login == NULL && !is_again;
    if (key->protocol == 3 || kind == GREETING_OWNED || kind == GREETING_NAMED || is_stranger)
        greeting_add(greeting, STEP_HELLO);
    if (is_again)
        greeting_add(greeting, STEP_NONCE);
}

void greeting_ask_role(struct greeting *greeting)
{
    if (greeting_is_again((enum greeting_kind)greeting->kind))
        return;
    for (unsigned i = 0; i < greeting->count; i++)
        if (greeting->steps[i] == STEP_HELLO)
            return;
    greeting_add(greeting, STEP_HELLO);
}

void greeting_read_only(struct greeting *greeting)
{
    greeting_add(greeting, STEP_READONLY);
}

static size_t say_select(char *out, const struct lane_key *key)
{
    char number[16];
    snprintf(number, sizeof number, "%u", key->database);
    const struct slice words[] = {SLICE(OWN_SELECT), slice_str(number)};
    return emit_array(out, words, 2);
}

static size_t say_hello(char *out, const struct lane_key *key)
{
    const struct slice words[] = {SLICE(OWN_HELLO), SLICE("3")};
    return emit_array(out, words, key->protocol == 3 ? 2 : 1);
}

static size_t say_write(char *out, const char *key)
{
    const struct slice words[] = {SLICE(OWN_SET), slice_str(key), SLICE(""), SLICE("PX"),
                                  SLICE("1")};
    return emit_array(out, words, 5);
}

static size_t say_step(const struct greeting *greeting, enum step step, const struct lane_key *key,
                       const struct nonce *nonce, char *out)
{
    const struct slice reset[] = {SLICE(OWN_RESET)}, readonly[] = {SLICE(OWN_READONLY)};
    switch (step) {
    case STEP_RESET:
        return emit_array(out, reset, 1);
    case STEP_OWN_LOGIN:
        return login_emit(greeting->cover.login, SLICE(OWN_AUTH), false, out);
    case STEP_WRITE:
        return say_write(out, greeting->cover.key);
    case STEP_SELECT:
    case STEP_SELECT_AGAIN:
        return say_select(out, key);
    case STEP_LOGIN:
        return login_emit(key->login, SLICE(OWN_AUTH), false, out);
    case STEP_HELLO:
        return say_hello(out, key);
    case STEP_READONLY:
        return emit_array(out, readonly, 1);
    case STEP_NONCE:
        break;
    }
    return nonce_request(nonce, out);
}

/*
 * True before the login of a fresh connection while an answer is pending. On a used connection the
 * nonce protects the order.
 */
static bool greeting_must_wait(const struct greeting *greeting)
{
    return !greeting_is_again((enum greeting_kind)greeting->kind) &&
           greeting->steps[greeting->said] == STEP_LOGIN && greeting->said != greeting->at;
}

char *greeting_say(struct greeting *greeting, const struct lane_key *key, const struct nonce *nonce,
                   size_t *n)
{
    const struct greeting_cover *cover = &greeting->cover;
    size_t room = ROOM + (key->login != NULL ? login_room(key->login) : 0);
    /* the cover's login is sent in the first call */
    room += greeting->said == 0 && cover->login != NULL ? login_room(cover->login) : 0;
    room += cover->key != NULL ? strlen(cover->key) : 0;
    char *out = malloc(room);
    if (out == NULL)
        return NULL;
    *n = 0;
    while (greeting->said < greeting->count && !greeting_must_wait(greeting))
        *n +=
            say_step(greeting, (enum step)greeting->steps[greeting->said++], key, nonce, out + *n);
    return out;
}

/* ---- answers ---- */

bool greeting_turns_away(const struct glimpse *answer)
{
    return glimpse_starts(answer, SLICE("-ERR max number of clients")) ||
           glimpse_starts(answer, SLICE("-DENIED"));
}

static enum greeting_verdict judge_fresh(struct greeting *greeting, enum step step,
                                         const struct glimpse *answer)
{
    bool is_error = glimpse_type(answer) == '-';
    if (greeting_turns_away(answer))
        return GREETING_TURNED_AWAY;
    switch (step) {
    case STEP_SELECT:
        greeting->is_selected = !is_error;
        return !is_error || greeting->steps[greeting->at] == STEP_LOGIN ? GREETING_GOOD
                                                                        : GREETING_REFUSED;
    case STEP_SELECT_AGAIN:
        return !is_error || greeting->is_selected ? GREETING_GOOD : GREETING_REFUSED;
    case STEP_LOGIN:
        if (glimpse_is(answer, SLICE("+OK\r\n")))
            return GREETING_GOOD;
        return glimpse_starts(answer, SLICE("-WRONGPASS")) ? GREETING_LOGIN_REFUSED
                                                           : GREETING_REFUSED;
    case STEP_OWN_LOGIN: /* refused: the connection's own user may be able to write the key */
    case STEP_READONLY:  /* refused: the node redirects each read to its master */
        return GREETING_GOOD;
    case STEP_WRITE:
        greeting->is_covered = glimpse_is(answer, SLICE("+OK\r\n"));
        return GREETING_GOOD;
    case STEP_HELLO:
        greeting->needs_auth = glimpse_starts(answer, SLICE("-NOAUTH"));
        /* LOADING, MASTERDOWN, BUSY: the server is up, and will give the client the same error. */
        if (is_error)
            return greeting->is_asking ? GREETING_GOOD : GREETING_REFUSED;
        if (glimpse_type(answer) != (greeting->is_asking ? '*' : '%'))
            return GREETING_NONSENSE;
        return greeting->kind == GREETING_OWNED ? GREETING_TELLS_ID : GREETING_GOOD;
    default:
        return GREETING_UNCLEAN;
    }
}

static enum greeting_verdict judge_again(struct greeting *greeting, enum step step,
                                         const struct nonce *nonce, const struct glimpse *answer)
{
    bool is_good = false;
    switch (step) {
    case STEP_RESET:
        if (glimpse_type(answer) == '-')
            return GREETING_NO_RESET;
        is_good = glimpse_is(answer, SLICE("+RESET\r\n"));
        break;
    case STEP_SELECT: /* the default user may lack rights that the user has: SELECT is sent again */
        greeting->is_selected = glimpse_is(answer, SLICE("+OK\r\n"));
        is_good = greeting->is_selected ||
                  (glimpse_type(answer) == '-' && greeting->steps[greeting->at] == STEP_LOGIN);
        break;
    case STEP_SELECT_AGAIN:
        is_good = greeting->is_selected || glimpse_is(answer, SLICE("+OK\r\n"));
        break;
    case STEP_LOGIN:
        is_good = glimpse_is(answer, SLICE("+OK\r\n"));
        break;
    case STEP_HELLO:
        if (glimpse_type(answer) != (greeting->is_asking ? '*' : '%'))
            return GREETING_UNCLEAN;
        return greeting->kind == GREETING_NAMED ? GREETING_TELLS_ID : GREETING_GOOD;
    case STEP_NONCE:
        if (nonce->form == NONCE_ECHO && glimpse_starts(answer, SLICE("-NOPERM")))
            return GREETING_NO_RESET;
        is_good = nonce_is_answered(nonce, answer);
        break;
    case STEP_WRITE:
        greeting->is_covered = glimpse_is(answer, SLICE("+OK\r\n"));
        return GREETING_GOOD; /* the nonce confirms the answer */
    case STEP_OWN_LOGIN:
        return GREETING_GOOD;
    case STEP_READONLY:
        break;
    }
    return is_good ? GREETING_GOOD : GREETING_UNCLEAN;
}

enum greeting_verdict greeting_judge(struct greeting *greeting, const struct nonce *nonce,
                                     const struct glimpse *answer)
{
    if (greeting->at == greeting->said)
        return GREETING_UNCLEAN; /* an answer without a request */
    enum step step = (enum step)greeting->steps[greeting->at++];
    if (greeting_is_again((enum greeting_kind)greeting->kind))
        return judge_again(greeting, step, nonce, answer);
    return judge_fresh(greeting, step, answer);
}

int64_t greeting_id(struct slice answer)
{
    static const char field[] = "$2\r\nid\r\n:";
    const char *at = memmem(answer.at, answer.len, field, sizeof field - 1);
    if (at == NULL)
        return 0;
    at += sizeof field - 1;
    const char *end = memchr(at, '\r', answer.len - (size_t)(at - answer.at));
    int64_t id;
    return end != NULL && num_parse(slice_of(at, (size_t)(end - at)), &id) && id > 0 ? id : 0;
}

enum node_role greeting_role(struct slice answer)
{
    static const char field[] = "$4\r\nrole\r\n$";
    const char *at = memmem(answer.at, answer.len, field, sizeof field - 1);
    if (at == NULL)
        return ROLE_UNKNOWN;
    size_t left = answer.len - (size_t)(at - answer.at);
    return memmem(at, left, "\r\nmaster\r\n", 10) != NULL ? ROLE_MASTER : ROLE_REPLICA;
}
