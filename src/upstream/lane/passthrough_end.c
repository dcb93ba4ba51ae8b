#include "upstream/lane/passthrough_end.h"

#include <string.h>

#include "upstream/lane/own_words.h"

/* Nonces before RESET: two, because CLIENT REPLY SKIP drops the answer to the first. */
#define NONCES 2

/* The first byte of the nonce behind RESET. No other nonce contains this byte. */
#define LAST '.'

#define RESET_ANSWER "+RESET\r\n"
#define ERROR "-ERR "

void passthrough_end_begin(struct lane *lane)
{
    static const struct slice reset = SLICE(OWN_RESET), quit = SLICE(OWN_QUIT);
    char words[(NONCES + 1) * NONCE_REQUEST_ROOM + 64];
    if (lane->state != LANE_PASSTHROUGH || lane->is_parted)
        return;
    enum nonce_form form = node_nonce_form(lane_node(lane));
    if (form >= NONCE_ECHO) { /* the answer to ECHO is two lines */
        lane_part(lane);
        return;
    }
    if (!nonce_draw(&lane->nonce, form)) {
        lane_fail(lane, END_LOST, "the system has no random numbers");
        return;
    }
    size_t n = 0;
    for (unsigned i = 0; i < NONCES; i++)
        n += nonce_request(&lane->nonce, words + n);
    n += emit_array(words + n, &reset, 1);
    struct nonce last = lane->nonce;
    last.text[0] = LAST;
    n += nonce_request(&last, words + n);
    n += emit_array(words + n, &quit, 1);
    lane_become(lane, LANE_ENDING);
    lane->held.len = 0;
    lane_send(lane, lane->owner, words, n);
}

/* Pass the first n buffered bytes to the owner. False: the lane is closed. */
static bool passthrough_end_pass(struct lane *lane, size_t n)
{
    struct bytes *held = &lane->held;
    if (n > 0)
        lane->owner->ops->on_bytes(lane->owner, held->at, n);
    if (lane_is_closed(lane))
        return false;
    memmove(held->at, held->at + n, held->len - n);
    held->len -= n;
    return true;
}

static bool ends_with_reset(const char *at, size_t n)
{
    const size_t len = sizeof RESET_ANSWER - 1;
    return n >= len && memcmp(at + n - len, RESET_ANSWER, len) == 0;
}

/* The start of the last line, finished or not, in the n bytes. */
static size_t passthrough_end_line_at(const char *at, size_t n)
{
    const char *before = n > 0 ? memrchr(at, '\n', n) : NULL;
    return before != NULL ? (size_t)(before + 1 - at) : 0;
}

/*
 * Returns the number of buffered bytes before the answers to weir's own commands. These answers
 * begin on a new line. SIZE_MAX: no answer to weir's own commands has arrived.
 */
static size_t find_end(const struct lane *lane)
{
    const struct bytes *held = &lane->held;
    const char *rest = lane->nonce.text + 1;
    const char *found = held->len > 0 ? memmem(held->at, held->len, rest, NONCE_LEN - 1) : NULL;
    if (found == NULL || found == held->at)
        return SIZE_MAX;
    size_t line = passthrough_end_line_at(held->at, (size_t)(found - held->at));
    bool is_behind_reset = found[-1] == LAST && ends_with_reset(held->at, line);
    return is_behind_reset ? line - (sizeof RESET_ANSWER - 1) : line;
}

/*
 * Returns how many bytes at the end may begin the answers to weir's own commands. The answers may
 * begin with the last, unfinished line, or with RESET's answer before that line.
 */
static size_t may_be_end(const struct bytes *held)
{
    size_t line = passthrough_end_line_at(held->at, held->len);
    size_t n = held->len - line;
    size_t common = n < sizeof ERROR - 1 ? n : sizeof ERROR - 1;
    if (n > NONCE_ANSWER_MOST || memcmp(held->at + line, ERROR, common) != 0) {
        size_t len = n < sizeof RESET_ANSWER - 1 ? n : sizeof RESET_ANSWER - 1;
        return memcmp(held->at + line, RESET_ANSWER, len) == 0 ? n : 0;
    }
    return n + (ends_with_reset(held->at, line) ? sizeof RESET_ANSWER - 1 : 0);
}

void passthrough_end_take(struct lane *lane, struct slice bytes)
{
    struct bytes *held = &lane->held;
    if (!bytes_add(held, bytes, SIZE_MAX)) {
        lane_fail(lane, END_LOST, "out of memory");
        return;
    }
    size_t end = find_end(lane);
    if (end == SIZE_MAX)
        (void)passthrough_end_pass(lane, held->len - may_be_end(held));
    else if (passthrough_end_pass(lane, end))
        lane_end(lane);
}

/* Passes whole lines only: the last line may be a part of the nonce's answer. */
void passthrough_end_flush(struct lane *lane)
{
    (void)passthrough_end_pass(lane, passthrough_end_line_at(lane->held.at, lane->held.len));
}
