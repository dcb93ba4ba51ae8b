/*
 * LIMIT commands about single subjects: blocks, connections, and the state of one subject, which
 * may never have come.
 */
#ifndef WEIR_FRONT_LIMIT_PEOPLE_H
#define WEIR_FRONT_LIMIT_PEOPLE_H

#include "front/client/client.h"
#include "front/commands/limit_words.h"
#include "quota/report.h"
#include "resp/build.h"

/* LIMIT BLOCK subject [EX time] [REASON text ...] [EX time], LIMIT UNBLOCK subject, LIMIT BLOCKS [n] */
void limit_people_block(struct client *client, const struct limit_words *words, struct build *out);
void limit_people_unblock(struct client *client, const struct limit_words *words, struct build *out);
void limit_people_blocks(struct client *client, const struct limit_words *words, struct build *out);

/* LIMIT CLIENTS [FOR subject], LIMIT KICK subject */
void limit_people_clients(struct client *client, const struct limit_words *words, struct build *out);
void limit_people_kick(struct client *client, const struct limit_words *words, struct build *out);

/* LIMIT command [FOR subject], and nothing else? False: `out` is an error. */
bool limit_people_may_name(const struct limit_words *words, struct build *out);

/* A subject by name, held until limit_people_forget. */
struct found {
    struct report_subject subject;
    struct subjects *table; /* that has it; NULL: it has never come, and this is who would bind it */
};

/* False: `out` is an error: nobody could have that name, or there is no memory. */
__attribute__((warn_unused_result)) bool limit_people_find(struct client *client, struct slice name,
                                                           struct found *found, struct build *out);
void limit_people_forget(struct found *found);

/* Is one subject meant? A name that is written like a pattern, and that nobody bears, is an error in `out`. */
bool limit_people_is_one(const struct client *client, struct slice name, struct build *out);

/* Could somebody have that name? If not an error is appended that says so, and what it should be. */
bool limit_people_is_name(const struct client *client, struct slice name, struct build *out);

#endif
