/*
 * The name of a subject as an operator writes it, and the facts in this name. The facts show which
 * policy applies to a subject that weir has never seen.
 */
#ifndef WEIR_LIMIT_NAMED_SUBJECT_H
#define WEIR_LIMIT_NAMED_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "limit/policy/identity.h"

struct named_subject {
    struct facts facts; /* the facts in the name; they point into `text` */
    char text[SUBJECT_NAME_MAX];
    /* the fact is complete; false: the start of a longer value, or a network of addresses */
    bool is_whole;
};

/*
 * Reads "user:ann", "ip:10.1.2.0/24" ... as identity_subject writes them. False: this identity
 * never gives that name. `why` then holds the reason, or a suggestion ("did you mean ...?").
 */
__attribute__((warn_unused_result)) bool named_subject_read(struct named_subject *named,
                                                            const struct identity *identity,
                                                            struct slice name, char *why,
                                                            size_t why_size);

/*
 * True if the name looks like a pattern of names (user:free-*). A real name may also contain the
 * characters of a pattern.
 */
bool named_subject_is_pattern(struct slice name);

/* True if connections can have that name. False for names from the keys of commands. */
bool named_subject_is_connected(struct slice name);

#endif
