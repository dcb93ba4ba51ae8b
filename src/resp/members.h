/*
 * Watches some members of an array that arrives in pieces, and finds the last of them that is +OK, or what else its
 * command answers when it has done what it was told.
 *
 * Members are chosen before the array arrives, by index, in rising order, each with a number for the caller's use. Only
 * the last MEMBERS_KEPT of them are remembered, so the answer can be "unknown". Nothing of the array is buffered but a
 * glimpse of the member being read.
 */
#ifndef WEIR_RESP_MEMBERS_H
#define WEIR_RESP_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "resp/glimpse.h"
#include "resp/scan.h"

#define MEMBERS_KEPT 8

struct members {
    uint32_t at[MEMBERS_KEPT]; /* indexes, from 0, of the members chosen last: the n-th is in at[n % MEMBERS_KEPT] */
    uint32_t number[MEMBERS_KEPT]; /* the caller's number for each ... */
    bool is_list[MEMBERS_KEPT];    /* ... and whether an array or a map is what +OK is elsewhere */
    uint32_t n;                    /* how many were chosen */
    /* the array, as far as it has arrived: */
    struct reply_scan scan;
    struct glimpse glimpse;
    int64_t announced; /* how many members it has, by its header; -1: not known yet, or not an array */
    uint32_t n_passed; /* members read */
    bool is_over;      /* it has ended or is broken: further bytes are ignored */
    bool has_ok;
    uint32_t number_of_ok; /* with has_ok: of the last chosen member that was +OK */
};

enum members_answer { MEMBERS_NONE, MEMBERS_ONE, MEMBERS_UNKNOWN };

void members_init(struct members *members);

/* Choose the member at index `at`, from 0; larger than those chosen before. */
void members_choose(struct members *members, uint32_t at, uint32_t number);

/* The same; in place of +OK an array or a map is expected, as HELLO answers. */
void members_choose_list(struct members *members, uint32_t at, uint32_t number);

/* Add the next piece of the array. */
void members_feed(struct members *members, const char *data, size_t n);

/*
 * After the whole array, which should have n members. MEMBERS_ONE: *number is that of the last chosen member that was
 * +OK; MEMBERS_NONE: none was; MEMBERS_UNKNOWN: it cannot be told.
 */
enum members_answer members_last_ok(const struct members *members, uint32_t n, uint32_t *number);

#endif
