/* For tests of LIMIT commands: parses a line of words into a decision request. */
#ifndef WEIR_TESTS_DECISION_KIT_H
#define WEIR_TESTS_DECISION_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/slice.h"
#include "quota/request_parse.h"
#include "resp/emit.h"

#define KIT_WORDS 64
#define KIT_ROOM 4096

static char kit_why[256];
static struct decision_request kit_parts[QUOTA_PARTS_MAX]; /* of the last parsed request */

/* Parses `line`; '' is an empty word. The request's memory is valid until the next call. */
static inline bool kit_parse(struct decision_request *ask, const char *line)
{
    static char request[KIT_ROOM];
    static char copy[KIT_ROOM];
    struct slice words[KIT_WORDS];
    size_t n = 0;
    char name[64];
    snprintf(copy, sizeof copy, "%s", line);
    struct slice rest = slice_str(copy);
    while (n < KIT_WORDS && split_word(&rest, &words[n])) {
        if (slice_eq(words[n], SLICE("''")))
            words[n] = SLICE("");
        n++;
    }
    bool is_sub = slice_eq_nocase(words[0], SLICE("limit"));
    int len = is_sub ? snprintf(name, sizeof name, "limit|%.*s", (int)words[1].len, words[1].at)
                     : snprintf(name, sizeof name, "%.*s", (int)words[0].len, words[0].at);
    return decision_request_parse(ask, kit_parts, slice_of(name, (size_t)len),
                                  slice_of(request, emit_array(request, words, n)), kit_why,
                                  sizeof kit_why);
}

static inline struct decision_request kit_request(const char *line)
{
    struct decision_request ask;
    if (!kit_parse(&ask, line))
        fail_msg("%s: %s", line, kit_why);
    return ask;
}

#endif
