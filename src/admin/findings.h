/* The current problems, most urgent first: the first thing for an operator on call to read. */
#ifndef WEIR_ADMIN_FINDINGS_H
#define WEIR_ADMIN_FINDINGS_H

#include "admin/snapshot.h"
#include "base/text.h"

enum finding_level { FINDING_BAD, FINDING_WARN, FINDING_GOOD };

struct finding {
    enum finding_level level;
    const char *at;    /* id of the part of the page with details */
    struct text title; /* for example "3 of 21 limits refuse"; heap */
    /*
     * for example "1,203/s: free/heavy, free/read"; may be empty, or contain configuration text;
     * heap
     */
    struct text more;
};

/* all findings of findings.c, and one for each enum lack (upstream/lane/lack.h) */
#define FINDINGS_MAX 25

struct findings {
    struct finding rows[FINDINGS_MAX];
    size_t n; /* at least 1: without a problem, a finding "Nothing is wrong" */
};

void findings_make(struct findings *findings, const struct snapshot *snapshot);
void findings_free(struct findings *findings);

/* "bad", "warn", "good" */
const char *finding_level_name(enum finding_level level);

#endif
