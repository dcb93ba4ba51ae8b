/*
 * The options of LIMIT commands: each is a row.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_OPTION_H
#define WEIR_QUOTA_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"

/* What has been read so far, and where a mistake is reported. */
struct reading {
    struct quota_ask *ask;   /* the whole call: most options are its own */
    struct quota_ask *part;  /* what is asked of one key, to which COST, APPROX, rates and their BURST belong */
    struct quota_ask *parts; /* room for QUOTA_PARTS_MAX, of which ask->n_parts are there */
    struct argv_walk walk;
    struct quota_draft drafts[QUOTA_RATES_MAX]; /* of this part */
    unsigned n_drafts;
    unsigned n_rates; /* of the parts before */
    unsigned seen;    /* options, as bits, those of a part for this one */
    unsigned before;  /* all that the parts before had */
    const char *name;
    char *why;
    size_t why_size;
};

/* ---- errors: each is false ---- */

/* "ERR syntax error, ", as some of Redis' own, and what is wrong: printf's format. */
__attribute__((format(printf, 2, 3))) bool option_syntax_error(const struct reading *reading, const char *format, ...);
bool option_unknown(const struct reading *reading, struct slice word);
bool option_no_integer(const struct reading *reading);

bool option_parse_within(const struct reading *reading, struct slice word, int64_t least, int64_t most,
                         int64_t *number);

/* ---- options ---- */

struct option;

/* Whose options may stand here: the command's, or of several keys the algorithm's of this one. */
const struct quota_algorithm *option_algorithm(const struct reading *reading);

/* NULL: there is none of this name that is `allowed`, bits of quota_option. */
const struct option *option_find(struct slice word, unsigned allowed);

/* Reads its value, if it has one: each option once, COST and APPROX once for each part, BURST for each rate. */
__attribute__((warn_unused_result)) bool option_take(struct reading *reading, const struct option *option);

/* Behind the last word: may those that were given stand together? */
__attribute__((warn_unused_result)) bool option_agree(const struct reading *reading);

/* Another key follows, with options of its own. */
void option_next_part(struct reading *reading);

/* Does the algorithm take them, once it is known? False: `why` is an error reply's text. */
__attribute__((warn_unused_result)) bool option_suit(const struct quota_ask *ask, char *why, size_t why_size);

/* The same of several keys, each of which gets its share of what was said of all. */
__attribute__((warn_unused_result)) bool option_suit_all(const struct quota_ask *ask, struct quota_ask *parts,
                                                         char *why, size_t why_size);

#endif
