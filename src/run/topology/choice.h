/*
 * Which of the members of a replicated upstream is the master that weir serves: what mastership_choose is asked, from
 * what members and sentinels say, and what it answers.
 *
 * Main thread. Sends nothing.
 */
#ifndef WEIR_RUN_CHOICE_H
#define WEIR_RUN_CHOICE_H

#include "run/topology/mastership.h"
#include "run/topology/members.h"

#define CHOICE_TEXT 400

struct choice {
    enum mastership_form form;
    char named[ADDRESS_TEXT]; /* key of the member that is the master, or is expected to say so; "": none */
    uint64_t epoch, changed_ns;
    struct member *home;       /* NULL: none is, for now */
    struct member *asked;      /* is to be asked at once what it is; NULL: none */
    enum mastership_pace pace; /* at which all are to be asked */
    uint64_t again_ns;         /* choose again then; 0: when something has changed */
    enum mastership_why why;
    char text[CHOICE_TEXT]; /* why none is, for people; "": one is */
};

/* What sentinels say: their claims, and how many are known. */
struct choice_claims {
    const struct mastership_claim *claims;
    size_t n, n_sentinels;
};

/* *choice is what was chosen last, or zeroed but for the form. */
void choice_make(struct choice *choice, const struct members *members, const struct choice_claims *claims,
                 uint64_t now_ns);

#endif
