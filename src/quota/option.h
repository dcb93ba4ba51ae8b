/*
 * The options of LIMIT commands: each is a row of a table.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_OPTION_H
#define WEIR_QUOTA_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/decision_request.h"

/* The state of parsing one command. */
struct reading {
    struct decision_request *ask; /* the whole command, to which most options belong */
    /* the request about the current key, with COST, APPROX, rates and their BURST */
    struct decision_request *part;
    /* room for QUOTA_PARTS_MAX, of which ask->n_parts are used */
    struct decision_request *parts;
    struct argv_walk walk;                    /* the words not read yet */
    struct rate_text drafts[QUOTA_RATES_MAX]; /* rates of the current part */
    unsigned n_drafts;
    unsigned n_rates; /* number of rates of all earlier parts together */
    /* options seen, as bits; COST, APPROX and BURST only if seen in the current part */
    unsigned seen;
    unsigned before;  /* options seen up to the end of the last part, as bits */
    const char *name; /* name of the command, for messages */
    char *why;
    size_t why_size;
};

/* ---- errors: each function sets `why` and returns false ---- */

/*
 * The texts begin with "ERR ", or with "ERR syntax error, " as Redis' texts do. `format` is as for
 * printf.
 */
__attribute__((format(printf, 2, 3))) bool option_error(const struct reading *reading,
                                                        const char *format, ...);
__attribute__((format(printf, 2, 3))) bool option_syntax_error(const struct reading *reading,
                                                               const char *format, ...);
bool option_unknown(const struct reading *reading, struct slice word);
bool option_no_integer(const struct reading *reading);

bool option_parse_within(const struct reading *reading, struct slice word, int64_t least,
                         int64_t most, int64_t *number);

/* ---- options ---- */

struct option;

/*
 * Returns the algorithm that says which options are allowed: of the command, or of the current key.
 */
const struct quota_algorithm *option_algorithm(const struct reading *reading);

/* Returns the option of this name among `allowed`, bits of enum quota_option. NULL: none. */
const struct option *option_find(struct slice word, unsigned allowed);

/*
 * Reads the option's value, if it has one. Each option may be given once; COST and APPROX once for
 * each part, BURST once for each rate.
 */
__attribute__((warn_unused_result)) bool option_take(struct reading *reading,
                                                     const struct option *option);

/* Called after the last word: true if the given options go together. */
__attribute__((warn_unused_result)) bool option_agree(const struct reading *reading);

/* Prepares for the options of the next key. */
void option_next_part(struct reading *reading);

/* True if the algorithm, once known, takes the options. False: `why` is an error reply. */
__attribute__((warn_unused_result)) bool option_suit(const struct decision_request *ask, char *why,
                                                     size_t why_size);

/* option_suit for several keys. Copies the options given for all keys into each part. */
__attribute__((warn_unused_result)) bool option_suit_all(const struct decision_request *ask,
                                                         struct decision_request *parts, char *why,
                                                         size_t why_size);

#endif
