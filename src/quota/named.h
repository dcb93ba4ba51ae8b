/*
 * The limits that the operator has named, for LIMIT CHECK: [limit NAME] in the configuration. Built by one thread, then
 * only read; counted.
 */
#ifndef WEIR_QUOTA_NAMED_H
#define WEIR_QUOTA_NAMED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "quota/override.h"
#include "quota/penalty.h"
#include "quota/rule.h"
#include "quota/tally.h"

#define NAMED_NAME_MAX TALLY_NAME_MAX
#define NAMED_MAX 10000

/* What becomes of a call while Redis is away; LOCAL, for named limits alone: weir decides (local.h). */
enum quota_when_down { QUOTA_DOWN_ERROR, QUOTA_DOWN_ALLOW, QUOTA_DOWN_DENY, QUOTA_DOWN_LOCAL };

struct named_limit {
    char *name;
    struct quota_rule rule;
    char *rates; /* as they are written */
    struct named_tally *tally;
    bool has_when_down; /* else limit-when-down holds */
    enum quota_when_down when_down;
    struct quota_penalty penalty; /* of who is limited; first_ms 0: none */
    char *penalty_text;           /* as it is written; NULL: none */
    bool has_over, is_shadow;     /* over is given, and shadow: it is asked and counted, and limits nobody */
    bool has_zone;                /* tz is given: rule.zone, which may be UTC. The limit owns it */
    struct overrides *overrides;  /* rates of single keys; NULL: none has any */
};

struct named;

struct named *named_new(void);
struct named *named_get(struct named *named);
void named_put(struct named *named);

/* A line of [limit NAME]: `key` = `text`. Lines of one name with the same algorithm add up. */
__attribute__((warn_unused_result)) bool named_add(struct named *named, struct slice name, struct slice key,
                                                   struct slice text, char *why, size_t why_size);

/* In any case of letters; NULL: there is none of that name. While lines are still added it may have no rate yet. */
const struct named_limit *named_find(const struct named *named, struct slice name);

/* What is still wrong with a limit when all lines have been added; false: `why`. */
__attribute__((warn_unused_result)) bool named_is_whole(const struct named_limit *limit, char *why, size_t why_size);

/* A word of limit-when-down, or of when-down. */
bool named_parse_when_down(struct slice text, enum quota_when_down *when_down);

/* In the order of the file. */
size_t named_count(const struct named *named);
const struct named_limit *named_at(const struct named *named, size_t i);

/* From here on limits count on with the tallies that those of the same name had before. `named` is not in use yet. */
void named_inherit(struct named *named, const struct named *before);

/* Is it a key of its section that is no algorithm? */
bool named_is_setting(struct slice key);

/* The rates that hold for a key of it now, in the limit's zone, which stays the limit's. */
struct quota_rule named_rule(const struct named_limit *limit, struct slice key, uint64_t now_ns);

/* The same limits, with the same tallies; not in use yet. */
struct named *named_copy(const struct named *named);

/* From here on the limit, which there is, has these for single keys, and the reference. `named` is not in use yet. */
void named_override(struct named *named, struct slice name, struct overrides *overrides);

/* error, allow, deny or local: what holds for it when limit-when-down says `otherwise`. */
const char *named_when_down(const struct named_limit *limit, enum quota_when_down otherwise);

/* The nearest name; empty: none is near. */
struct slice named_near(const struct named *named, struct slice name);

#endif
