/*
 * Some members of an array that passes in pieces: which is the last of them that says +OK.
 *
 * Each stands for a number. They are chosen before the array comes, in rising order, and only the last few are kept: so
 * it can be that the answer is not known. Nothing is kept of the array but a glimpse of the member being read.
 */
#ifndef WEIR_RESP_MEMBERS_H
#define WEIR_RESP_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "resp/glimpse.h"
#include "resp/scan.h"

#define MEMBERS_KEPT 8

struct members {
    uint32_t at[MEMBERS_KEPT];     /* the places of those chosen last, from 0: that of the n-th in n % MEMBERS_KEPT */
    uint32_t number[MEMBERS_KEPT]; /* what each stands for */
    uint32_t n;                    /* chosen */
    /* the array, as far as it has come: */
    struct reply_scan scan;
    struct glimpse glimpse;
    int64_t announced; /* how many members it has; -1: not known yet, or it is no array */
    uint32_t n_passed;
    bool is_over; /* nothing more is looked at */
    bool has_ok;
    uint32_t number_of_ok;
};

enum members_answer { MEMBERS_NONE, MEMBERS_ONE, MEMBERS_UNKNOWN };

void members_init(struct members *members);

/* The member at that place, from 0, is one of them. */
void members_choose(struct members *members, uint32_t at, uint32_t number);

/* The next piece of the array. */
void members_feed(struct members *members, const char *data, size_t n);

/* The array of so many has come. MEMBERS_ONE: *number is that of the last chosen that says +OK. */
enum members_answer members_last_ok(const struct members *members, uint32_t n, uint32_t *number);

#endif
