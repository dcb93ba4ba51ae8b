/*
 * Parses LIMIT commands.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_REQUEST_PARSE_H
#define WEIR_QUOTA_REQUEST_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/decision_request.h"

/*
 * Parses a whole multibulk request. `name` is the command's name in own.def ("limit|funnel"). The
 * requests about several keys go into `parts`, which has room for QUOTA_PARTS_MAX, and ask->parts
 * points to `parts`. False: `why` is the text of the error reply without its '-', "ERR ...". `why`
 * may contain bytes of the request (build_error escapes them).
 */
__attribute__((warn_unused_result)) bool decision_request_parse(struct decision_request *ask,
                                                                struct decision_request *parts,
                                                                struct slice name,
                                                                struct slice request, char *why,
                                                                size_t why_size);

/*
 * Gives a request about a named limit (CHECK) that limit's rule. The request is then like any other
 * request. With several keys the caller has set the rule of each part, and `rule` is NULL. False:
 * the cost does not fit the rule, as `why` says.
 */
__attribute__((warn_unused_result)) bool decision_request_resolve(struct decision_request *ask,
                                                                  struct decision_request *parts,
                                                                  const struct quota_rule *rule,
                                                                  char *why, size_t why_size);

/*
 * A cache of parsed requests, found by their bytes. Applications send few kinds of requests about
 * many keys, so most requests are found.
 *
 * A request is a head (the number of words, and the command's two words), a key, and a tail (the
 * rate and the options). Requests with the same head and tail differ in the key alone, so only the
 * key is read. Only requests about one key with a rate of their own are cached. One cache per
 * worker.
 */
/* chosen: few applications send more kinds of requests; the index is a hash of the tail */
#define REQUEST_MEMO_SLOTS 16
#define REQUEST_MEMO_HEAD 40 /* bytes; requests with a longer head or tail are not cached */
#define REQUEST_MEMO_TAIL 96

/* Zeroed: empty. */
struct request_memo {
    struct {
        uint8_t head_len; /* 0: this index is empty */
        uint8_t tail_len;
        char head[REQUEST_MEMO_HEAD];
        char tail[REQUEST_MEMO_TAIL];
        struct decision_request ask; /* the parsed request, without the key */
    } slots[REQUEST_MEMO_SLOTS];
};

/*
 * Sets *ask to the result of decision_request_parse for this request, if cached; ask->key points
 * into `request`. False: not cached.
 */
__attribute__((warn_unused_result)) bool request_memo_find(const struct request_memo *memo,
                                                           struct slice request,
                                                           struct decision_request *ask);

/* Caches *ask, which decision_request_parse has made of the request. */
void request_memo_note(struct request_memo *memo, struct slice request,
                       const struct decision_request *ask);

#endif
