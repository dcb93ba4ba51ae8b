/*
 * What the sentinels say at one moment, as the choice of the master needs it, and the members that follow from it: the
 * servers that sentinels name, and the replicas that they tell of, where clients read there.
 *
 * Main thread. Sends nothing.
 */
#ifndef WEIR_RUN_SENTINEL_VIEW_H
#define WEIR_RUN_SENTINEL_VIEW_H

#include "run/topology/choice.h"
#include "run/topology/members.h"
#include "run/topology/sentinels.h"

struct sentinel_view {
    const struct sentinels *sentinels;
    struct sentinels_claim told[SENTINELS_MOST];
    char keys[SENTINELS_MOST][ADDRESS_TEXT]; /* of the servers that these name */
    struct mastership_claim claims[SENTINELS_MOST];
    size_t n;
    const struct address *replicas[SENTINELS_REPLICAS_MOST];
    size_t n_replicas;
};

/* *view is good until the loop goes on. */
void sentinel_view_look(struct sentinel_view *view, const struct sentinels *sentinels);

struct choice_claims sentinel_view_claims(const struct sentinel_view *view);

/* A member for each server that is named, and for each replica. */
void sentinel_view_admit(const struct sentinel_view *view, struct members *members);

/*
 * Set is_leaving of members of which no sentinel tells any more. While none answers none leaves; nor does the home, or
 * the member that is expected to be it.
 */
void sentinel_view_dismiss(const struct sentinel_view *view, struct members *members, const struct choice *choice);

/* Why the sentinels name no master, for people: "sentinel 10.0.0.1:26379: connection refused". Returns its length. */
size_t sentinel_view_explain(const struct sentinel_view *view, char *out, size_t room);

#endif
