/*
 * LIMIT commands about single subjects: blocks, connections, and the state of one subject. A
 * subject need not have connected yet.
 */
#ifndef WEIR_FRONT_LIMIT_PEOPLE_H
#define WEIR_FRONT_LIMIT_PEOPLE_H

#include "front/client/client.h"
#include "front/commands/limit_words.h"
#include "quota/report.h"
#include "resp/build.h"

/*
 * LIMIT BLOCK subject [EX time] [REASON text ...] [EX time], LIMIT UNBLOCK subject, LIMIT BLOCKS
 * [n]
 */
void limit_people_block(struct client *client, const struct limit_words *words, struct build *out);
void limit_people_unblock(struct client *client, const struct limit_words *words,
                          struct build *out);
void limit_people_blocks(struct client *client, const struct limit_words *words, struct build *out);

/* LIMIT CLIENTS [FOR subject], LIMIT KICK subject */
void limit_people_clients(struct client *client, const struct limit_words *words,
                          struct build *out);
void limit_people_kick(struct client *client, const struct limit_words *words, struct build *out);

/* True if the command has the form LIMIT command [FOR subject]. False if `out` holds an error. */
bool limit_people_may_name(const struct limit_words *words, struct build *out);

/* A subject found by name. limit_people_forget releases the subject. */
struct found {
    struct report_subject subject;
    /*
     * the table that holds the subject; NULL: weir has no such subject, and made one for this
     * command
     */
    struct subjects *table;
};

/*
 * Finds or makes the subject called `name`. False if `out` holds an error: no subject can have this
 * name, or memory is out.
 */
__attribute__((warn_unused_result)) bool limit_people_find(struct client *client, struct slice name,
                                                           struct found *found, struct build *out);
void limit_people_forget(struct found *found);

/*
 * True if the name means one subject. False if the name is unknown and written like a pattern;
 * `out` then holds an error.
 */
bool limit_people_is_one(const struct client *client, struct slice name, struct build *out);

/*
 * True if a subject can have this name. False if `out` holds an error, which says why, and suggests
 * a valid name.
 */
bool limit_people_is_name(const struct client *client, struct slice name, struct build *out);

#endif
