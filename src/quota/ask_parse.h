/*
 * Parses LIMIT commands.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_ASK_PARSE_H
#define WEIR_QUOTA_ASK_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"

/*
 * Parse a whole multibulk request; `name` is the command's, as in own.def ("limit|funnel"). What is asked of several
 * keys goes into `parts`, which has room for QUOTA_PARTS_MAX, and ask->parts points there. False: `why` is the text of
 * the error reply without its '-', "ERR ..."; it may contain bytes of the request (build_error escapes them).
 */
__attribute__((warn_unused_result)) bool quota_ask_parse(struct quota_ask *ask, struct quota_ask *parts,
                                                         struct slice name, struct slice request, char *why,
                                                         size_t why_size);

/*
 * Give an ask about a named limit (CHECK) that limit's rule; after that it is like any other ask. With several keys the
 * caller has set the rule of each part, and `rule` is NULL. False: its cost does not fit the rule, as `why` says.
 */
__attribute__((warn_unused_result)) bool quota_ask_resolve(struct quota_ask *ask, struct quota_ask *parts,
                                                           const struct quota_rule *rule, char *why, size_t why_size);

/*
 * Asks that have been parsed before, found by their bytes: applications ask few things about many
 * keys.
 *
 * A request is its head (how many words, and the command's two), a key, and a tail (the rate and
 * options). Requests with the same head and tail ask the same but for the key, and the key is all
 * that is read of them. Only asks about one key with a rate of their own are kept: others have more
 * that belongs to the one request. One worker's.
 */
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
