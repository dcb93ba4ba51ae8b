#include "upstream/nonce.h"

#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool nonce_draw(struct nonce *nonce)
{
    unsigned char bits[NONCE_LEN];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return false;
    for (size_t i = 0; i < NONCE_LEN; i++)
        nonce->text[i] = alphabet[bits[i] % (sizeof alphabet - 1)];
    return true;
}

size_t nonce_request(const struct nonce *nonce, char *out)
{
    const struct slice words[] = {SLICE("WEIR.NONCE"), slice_of(nonce->text, NONCE_LEN)};
    return emit_array(out, words, 2);
}

/*
 * "-ERR unknown command 'WEIR.NONCE', with args beginning with: '<nonce>' ", in backquotes and with a comma before 7.0.
 */
bool nonce_is_answered(const struct nonce *nonce, const struct glimpse *frame)
{
    return glimpse_starts(frame, SLICE("-ERR unknown command ")) &&
           memmem(frame->tail, frame->n_tail, nonce->text, NONCE_LEN) != NULL;
}
