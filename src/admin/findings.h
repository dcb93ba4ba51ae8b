/*
 * What is wrong, most urgent first: what whoever is woken at night reads before anything else.
 */
#ifndef WEIR_ADMIN_FINDINGS_H
#define WEIR_ADMIN_FINDINGS_H

#include "admin/snapshot.h"
#include "base/text.h"

enum finding_level { FINDING_BAD, FINDING_WARN, FINDING_GOOD };

struct finding {
    enum finding_level level;
    const char *at;    /* the id of the part of the page that says more */
    struct text title; /* "3 of 21 limits refuse"; heap */
    struct text more;  /* "1,203/s: free/heavy, free/read"; may be empty, may hold text of the configuration; heap */
};

#define FINDINGS_MAX 25 /* each of findings.c, and what weir may lack (upstream/lane/lack.h) */

struct findings {
    struct finding rows[FINDINGS_MAX];
    size_t n; /* at least 1: where nothing is wrong, one says so */
};

void findings_make(struct findings *findings, const struct snapshot *snapshot);
void findings_free(struct findings *findings);

/* "bad", "warn", "good" */
const char *finding_level_name(enum finding_level level);

#endif
