#include "upstream/lane/own_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/*
 * The text behind the word must fit, too. Any client may use weir's spelling, and must not hide a
 * message or a CLIENT KILL by that spelling.
 */
static const struct shape {
    struct slice begin;
    struct slice end;
} shapes[] = {
    {TEXT("\"" OWN_HELLO "\""), TEXT("")},
    {TEXT("\"" OWN_PING "\"\r\n"), TEXT("")},
    {TEXT("\"" OWN_RESET "\"\r\n"), TEXT("")},
    {TEXT("\"" OWN_QUIT "\"\r\n"), TEXT("")},
    {TEXT("\"" OWN_AUTH "\" \"(redacted)\""), TEXT("")},
    {TEXT("\"" OWN_SELECT "\""), TEXT("")},
    {TEXT("\"" OWN_CLIENT "\" \"SETINFO\" "), TEXT("")},
    {TEXT("\"" OWN_SET "\" "), TEXT("weir:written\" \"\" \"PX\" \"1\"\r\n")},
};

static bool own_words_fits(struct slice text, const struct shape *shape)
{
    return text.len >= shape->begin.len + shape->end.len &&
           memcmp(text.at, shape->begin.at, shape->begin.len) == 0 &&
           memcmp(text.at + text.len - shape->end.len, shape->end.at, shape->end.len) == 0;
}

bool own_words_in_line(struct slice bytes)
{
    static const char before[] = "] ";
    const char *end = memmem(bytes.at, bytes.len, "\r\n", 2);
    if (end == NULL)
        return false;
    struct slice line = slice_of(bytes.at, (size_t)(end - bytes.at) + 2);
    const char *at = memmem(line.at, line.len, before, sizeof before - 1);
    if (at == NULL)
        return false;
    at += sizeof before - 1;
    struct slice said = slice_of(at, line.len - (size_t)(at - line.at));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (own_words_fits(said, &shapes[i]))
            return true;
    return false;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool nonce_draw(struct nonce *nonce, enum nonce_form form)
{
    unsigned char bits[NONCE_LEN];
    if (form == NONCE_NONE || getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return false;
    for (size_t i = 0; i < NONCE_LEN; i++)
        nonce->text[i] = alphabet[bits[i] % (sizeof alphabet - 1)];
    nonce->form = (uint8_t)form;
    return true;
}

size_t nonce_request(const struct nonce *nonce, char *out)
{
    const struct slice text = slice_of(nonce->text, NONCE_LEN);
    const struct slice unknown[] = {SLICE("WEIR.NONCE"), text};
    const struct slice hello[] = {SLICE(OWN_HELLO), SLICE("2"), text};
    const struct slice echo[] = {SLICE(OWN_ECHO), text};
    switch ((enum nonce_form)nonce->form) {
    case NONCE_HELLO:
        return emit_array(out, hello, 3);
    case NONCE_ECHO:
        return emit_array(out, echo, 2);
    case NONCE_UNKNOWN:
    case NONCE_NONE:
        break;
    }
    return emit_array(out, unknown, 2);
}

/*
 * NONCE_UNKNOWN: "-ERR unknown command 'WEIR.NONCE', with args beginning with: '<nonce>' "; Redis
 * before 7.0 writes backquotes and a comma. NONCE_HELLO: "-ERR Syntax error in HELLO option
 * '<nonce>'". NONCE_ECHO: the nonce itself.
 */
bool nonce_is_answered(const struct nonce *nonce, const struct glimpse *frame)
{
    bool is_form = nonce->form == NONCE_UNKNOWN
                       ? glimpse_starts(frame, SLICE("-ERR unknown command "))
                   : nonce->form == NONCE_HELLO ? glimpse_type(frame) == '-'
                                                : glimpse_type(frame) == '$';
    return is_form && memmem(frame->tail, frame->n_tail, nonce->text, NONCE_LEN) != NULL;
}
