#include "upstream/raw_end.h"

#include <string.h>

#include "upstream/own_words.h"

/* After CLIENT REPLY SKIP one of them is not answered. */
#define NONCES 2

void raw_end_begin(struct lane *lane)
{
    char words[NONCES * NONCE_REQUEST_ROOM + 32];
    if (lane->is_ending || lane->is_parted || lane_is_closed(lane))
        return;
    if (!nonce_draw(&lane->nonce)) {
        lane_fail(lane, END_LOST, "the system has no random numbers");
        return;
    }
    size_t n = 0;
    for (unsigned i = 0; i < NONCES; i++)
        n += nonce_request(&lane->nonce, words + n);
    const struct slice quit = SLICE(OWN_QUIT);
    n += emit_array(words + n, &quit, 1);
    lane->is_ending = true;
    lane->held.len = 0;
    lane_send(lane, lane->owner, words, n);
}

void raw_end_part(struct lane *lane)
{
    if (lane->is_parted || lane_is_closed(lane))
        return;
    lane->is_parted = true;
    lane->moved_ns = link_loop(&lane->link)->now_ns;
    outbox_flush(&lane->base->commons->outbox);
    link_part(&lane->link);
    lane->base->ops->on_watched(lane);
}

/* The first n of the bytes that are held are the owner's. False: the lane is gone. */
static bool pass(struct lane *lane, size_t n)
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

void raw_end_take(struct lane *lane, struct slice bytes)
{
    struct bytes *held = &lane->held;
    if (!bytes_add(held, bytes, SIZE_MAX)) {
        lane_fail(lane, END_LOST, "out of memory");
        return;
    }
    const char *answer = nonce_find(&lane->nonce, bytes_slice(held));
    if (answer != NULL && pass(lane, (size_t)(answer - held->at)))
        lane_end(lane);
    else if (answer == NULL && held->len > NONCE_ANSWER_MOST)
        (void)pass(lane, held->len - NONCE_ANSWER_MOST);
}

/* Whole lines only: the last may be a part of the nonce's answer, and is of no use to anybody. */
void raw_end_flush(struct lane *lane)
{
    const struct bytes *held = &lane->held;
    const char *last = held->len > 0 ? memrchr(held->at, '\n', held->len) : NULL;
    if (last != NULL)
        (void)pass(lane, (size_t)(last + 1 - held->at));
}
