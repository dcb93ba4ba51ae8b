#include "upstream/node/nonce.h"

#include <string.h>
#include <sys/random.h>

#include "upstream/lane/own_words.h"

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
 * "-ERR unknown command 'WEIR.NONCE', with args beginning with: '<nonce>' ", in backquotes and with a comma before 7.0;
 * "-ERR Syntax error in HELLO option '<nonce>'"; or the nonce itself.
 */
bool nonce_is_answered(const struct nonce *nonce, const struct glimpse *frame)
{
    bool is_form = nonce->form == NONCE_UNKNOWN ? glimpse_starts(frame, SLICE("-ERR unknown command "))
                   : nonce->form == NONCE_HELLO ? glimpse_type(frame) == '-'
                                                : glimpse_type(frame) == '$';
    return is_form && memmem(frame->tail, frame->n_tail, nonce->text, NONCE_LEN) != NULL;
}
