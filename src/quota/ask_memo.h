/*
 * Asks that have been parsed before, found by their bytes: applications ask few things about many keys.
 *
 * A request is its head (how many words, and the command's two), a key, and a tail (the rate and options). Whatever has
 * the same head and tail asks the same, but for the key; so that is all that is read of it. Only asks about one key
 * with a rate of their own are kept: in others there is more that belongs to the one request. One worker's; nothing is
 * allocated.
 */
#ifndef WEIR_QUOTA_ASK_MEMO_H
#define WEIR_QUOTA_ASK_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"

#define ASK_MEMO_SLOTS 16 /* by the tail; few applications ask so many things */
#define ASK_MEMO_HEAD 40  /* bytes; longer heads and tails are not kept */
#define ASK_MEMO_TAIL 96

/* Zeroed: empty. */
struct ask_memo {
    struct {
        uint8_t head_len; /* 0: nothing is here */
        uint8_t tail_len;
        char head[ASK_MEMO_HEAD];
        char tail[ASK_MEMO_TAIL];
        struct quota_ask ask; /* but for its key */
    } slots[ASK_MEMO_SLOTS];
};

/* What quota_ask_parse would make of this request, if that is known; the key points into it. False: parse it. */
__attribute__((warn_unused_result)) bool ask_memo_find(const struct ask_memo *memo, struct slice request,
                                                       struct quota_ask *ask);

/* This is what quota_ask_parse has made of the request. */
void ask_memo_note(struct ask_memo *memo, struct slice request, const struct quota_ask *ask);

#endif
