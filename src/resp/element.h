/*
 * Splits a whole reply in memory into its header and its elements. Nothing is copied. Any thread.
 */
#ifndef WEIR_RESP_ELEMENT_H
#define WEIR_RESP_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "base/slice.h"
#include "resp/scan.h"

struct element_head {
    char type;
    int64_t number;    /* 0 if the header has no number */
    struct slice rest; /* bytes after the header's line */
};

/* Reads the header. False if the reply does not begin with a type and a number. */
static inline bool element_head(struct slice reply, struct element_head *head)
{
    const char *end = reply.len > 1 ? memchr(reply.at, '\r', reply.len) : NULL;
    if (end == NULL || reply.at + reply.len - end < 2)
        return false;
    size_t len = (size_t)(end - reply.at) - 1;
    *head = (struct element_head){
        .type = *reply.at, .rest = slice_of(end + 2, (size_t)(reply.at + reply.len - end) - 2)};
    return num_parse(slice_of(reply.at + 1, len), &head->number);
}

/* Takes the next element off *rest. False if no whole element is left. */
static inline bool element_next(struct slice *rest, struct slice *element)
{
    struct reply_scan scan = {0};
    size_t used = 0;
    if (rest->len == 0 || reply_scan(&scan, rest->at, rest->len, &used) != SCAN_FRAME)
        return false;
    *element = slice_of(rest->at, used);
    *rest = slice_of(rest->at + used, rest->len - used);
    return true;
}

#endif
