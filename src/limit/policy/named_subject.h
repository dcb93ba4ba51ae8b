/*
 * A subject's name as an operator writes it, and what is known of whoever bears it: enough to say which policy binds
 * one that has never been seen.
 */
#ifndef WEIR_LIMIT_NAMED_SUBJECT_H
#define WEIR_LIMIT_NAMED_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "limit/policy/identity.h"

struct named_subject {
    struct facts facts; /* what its name says; they point into `text` */
    char text[SUBJECT_NAME_MAX];
    bool is_whole; /* they are all of the fact: not the beginning of a longer one, nor a network of addresses */
};

/*
 * Read "user:ann", "ip:10.1.2.0/24" ... as identity_subject writes them. False: nobody could have that name by this
 * identity, and `why` says what is wrong with it, or what it should be ("did you mean ...?").
 */
__attribute__((warn_unused_result)) bool named_subject_read(struct named_subject *named,
                                                            const struct identity *identity, struct slice name,
                                                            char *why, size_t why_size);

/* Is it written like a pattern of names (user:free-*)? A name may have such characters, too. */
bool named_subject_is_pattern(struct slice name);

/* Is it a name of connections? Not one that the keys of commands give. */
bool named_subject_is_connected(struct slice name);

#endif
