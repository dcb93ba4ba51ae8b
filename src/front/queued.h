/*
 * What a client has queued since MULTI, as far as EXEC's answer will be of use only to who knows it.
 *
 * How many requests there are, and what of them is heard, is known until EXEC is sent; what they make of the session
 * until it is answered, or its client knows who it is. Zeroed: nothing.
 */
#ifndef WEIR_FRONT_QUEUED_H
#define WEIR_FRONT_QUEUED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/hello.h"
#include "resp/members.h"
#include "upstream/login.h"

struct queued {
    /* Of EXEC's answer, and until the next MULTI: */
    uint32_t n;          /* requests sent since MULTI that EXEC is to carry out */
    uint32_t pause_ms;   /* of CLIENT PAUSE ... WRITE; 0: none */
    uint32_t n_silent;   /* of a silent client */
    uint32_t heard_from; /* which of them, from 1, is the first that even the silent hear of; 0: none */
    /* Of the session, and after queued_settle only what Redis has done: */
    struct login *login;     /* of the last AUTH, or HELLO ... AUTH; counted; NULL: none */
    char *name;              /* of the last HELLO ... SETNAME, or CLIENT SETNAME; heap; NULL: none */
    struct tried *tried;     /* all of these, by their places in what EXEC will answer; heap; NULL: none */
    struct members *selects; /* each SELECT, by its database, in what EXEC will answer; heap; NULL: none */
    uint8_t protocol;        /* of the last HELLO that asks for one; 0: none */
    bool is_short;           /* the login: see struct question */
    bool is_refused;         /* Redis has taken none of the logins: the last one changes nobody */
    bool is_astray;          /* CLIENT TRACKING: what comes of it only its lane knows */
};

/* MULTI has been sent: nothing is queued. */
void queued_begin(struct queued *queued);

/* EXEC or DISCARD has been sent: what of the answer is heard has been settled. */
void queued_end(struct queued *queued);

/* What was queued of the session will not be carried out, or has been. */
void queued_forget(struct queued *queued);

/* One more request, after what follows has been noted of it. */
static inline void queued_add(struct queued *queued)
{
    queued->n++;
}

/* It is a silent client's; `is_heard`: what answers it is heard all the same, and all that follows. */
void queued_add_silent(struct queued *queued, bool is_heard);

/* CLIENT PAUSE ... WRITE. */
void queued_pause(struct queued *queued, uint32_t ms);

/* What it does is not followed. */
void queued_go_astray(struct queued *queued);

/* SELECT, CLIENT SETNAME, HELLO, and the login of AUTH or HELLO. False: out of memory. */
__attribute__((warn_unused_result)) bool queued_select(struct queued *queued, uint32_t database);
__attribute__((warn_unused_result)) bool queued_rename(struct queued *queued, struct slice name);
__attribute__((warn_unused_result)) bool queued_hello(struct queued *queued, const struct hello *hello);
__attribute__((warn_unused_result)) bool queued_log_in(struct queued *queued, const struct hello *hello);

/*
 * EXEC has carried it out, and its answer has been fed: login, name and protocol are now the last that Redis has taken;
 * of logins that were all refused the last. `is_forgeable`: a script may have written that answer, so that it says
 * nothing of logins. False: the answer does not tell.
 */
__attribute__((warn_unused_result)) bool queued_settle(struct queued *queued, bool is_forgeable);

/* The next bytes of what answers EXEC. */
void queued_feed(struct queued *queued, const char *data, size_t n);

/* Does what was queued of protocol and name hold once EXEC has carried it out? */
static inline bool queued_has_hello(const struct queued *queued)
{
    return queued->protocol != 0 || queued->name != NULL;
}

/* The same, or in which database it is? */
static inline bool queued_has_session(const struct queued *queued)
{
    return queued_has_hello(queued) || queued->selects != NULL;
}

static inline struct slice queued_name(const struct queued *queued)
{
    return slice_str(queued->name != NULL ? queued->name : "");
}

#endif
