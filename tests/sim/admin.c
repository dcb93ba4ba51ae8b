#include "tests/sim/admin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/links.h"
#include "tests/sim/proof_laws.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"

#define MS UINT64_C(1000000)
#define AGAIN_NS (20 * MS) /* time until a command is sent again after BUSY */
#define LINE_ROOM 128
#define BUSY_KEPT_NS (2000 * MS) /* weir probes again within this time */
/* longest time for which answers to the loading of weir's scripts may be under way */
#define LOAD_NS (2000 * MS)
#define SAID_MAX 64
#define MARKS 4

/* What Redis may lack, and the words of the errors that report it. */
enum need { NEED_MEMORY, NEED_REPLICAS, NEED_DISK, NEED_MASTER, NEED_TIME, N_NEEDS };

static const char *const marks[N_NEEDS][MARKS] = {
    [NEED_MEMORY] = {"OOM command not allowed"},
    [NEED_REPLICAS] = {"NOREPLICAS Not enough good replicas"},
    [NEED_DISK] = {"MISCONF "},
    [NEED_MASTER] = {"READONLY You can't write", "MASTERDOWN Link with MASTER",
                     "UNBLOCKED force unblock", "ERR WAIT cannot be used with replica"},
    [NEED_TIME] = {"BUSY "},
};

/* How long a state lasts. until_ns is NEVER while the state lasts. */
#define NEVER UINT64_MAX
struct spell {
    uint64_t since_ns; /* when Redis confirmed the state; NEVER: not confirmed yet, or reversed */
    uint64_t until_ns; /* the state has ended for certain by then; 0: the state never began */
};

struct said {
    char line[LINE_ROOM];
    void (*on_done)(unsigned which, bool is_done); /* NULL: no callback */
    unsigned which;
};

/* A queue, oldest first. */
struct saids {
    struct said items[SAID_MAX]; /* a ring */
    unsigned first, n;
};

static struct admin {
    struct saids lines; /* commands that Redis has not carried out yet */
    bool is_asked;      /* the first of `lines` is sent and not answered yet */
    struct spell needs[N_NEEDS];
    struct spell locks[USERS];
    struct spell tokens[USERS * TOKENS];
    struct bell give[USERS * TOKENS];
    bool gives[USERS * TOKENS]; /* the command that restores the password is sent */
    struct bell over[N_NEEDS], unlock[USERS], unpause, again;
    bool wants_password;
    uint64_t password_ns; /* the state of the password is known since then; NEVER: unknown */
    /* when a client was first refused since the password was removed; 0: no client was refused */
    uint64_t refused_ns;
    uint64_t killed_ns;  /* when the last script was killed; 0: no script was killed */
    unsigned n_changing; /* changes of the password that are not answered yet */
} admin;

/* ---- sending commands ---- */

/*
 * One command at a time: the next command would overtake a command that Redis answered with BUSY.
 */
static void say_first(void)
{
    admin.is_asked = admin.lines.n > 0 && server_is_up();
    if (admin.is_asked)
        server_tell(admin.lines.items[admin.lines.first].line);
}

static struct said take(struct saids *saids)
{
    struct said said = saids->items[saids->first];
    saids->first = (saids->first + 1) % SAID_MAX;
    saids->n--;
    return said;
}

__attribute__((format(printf, 3, 4))) static void tell(void (*on_done)(unsigned which,
                                                                       bool is_done),
                                                       unsigned which, const char *format, ...)
{
    struct saids *lines = &admin.lines;
    if (!server_is_up() || lines->n == SAID_MAX)
        return;
    struct said *said = &lines->items[(lines->first + lines->n++) % SAID_MAX];
    *said = (struct said){.on_done = on_done, .which = which};
    va_list args;
    va_start(args, format);
    vsnprintf(said->line, sizeof said->line, format, args);
    va_end(args);
    if (lines->n == 1)
        say_first();
}

/* SCRIPT KILL is sent at once if all other commands wait for a script to end. */
static void tell_to_kill(void)
{
    struct saids *lines = &admin.lines;
    if (lines->n == 0 || admin.is_asked || lines->n == SAID_MAX) {
        tell(NULL, 0, "SCRIPT KILL");
        return;
    }
    lines->first = (lines->first + SAID_MAX - 1) % SAID_MAX;
    lines->n++;
    lines->items[lines->first] = (struct said){.line = "SCRIPT KILL"};
    world_silence(&admin.again);
    say_first();
}

static void on_again(struct bell *bell)
{
    (void)bell;
    if (!admin.is_asked)
        say_first();
}

static bool begins(struct slice answer, struct slice word)
{
    return answer.len >= word.len && memcmp(answer.at, word.at, word.len) == 0;
}

/* BUSY and LOADING lead to a retry of the command. */
static void on_told(struct slice answer)
{
    bool insists = begins(answer, SLICE("-BUSY")) || begins(answer, SLICE("-LOADING"));
    admin.is_asked = false;
    world_ring_at(&admin.again, world.now_ns + (insists ? AGAIN_NS : 0));
    if (insists)
        return;
    struct said said = take(&admin.lines);
    if (said.on_done != NULL)
        said.on_done(said.which, answer.at[0] != '-');
}

static void on_left(void)
{
    admin.is_asked = false;
    world_ring_at(&admin.again, world.now_ns + AGAIN_NS);
}

/* ---- needs ---- */

static void begin(struct spell *spell)
{
    spell->until_ns = NEVER;
}

static void end(struct spell *spell)
{
    *spell = (struct spell){.since_ns = NEVER, .until_ns = world.now_ns};
}

static void on_need(unsigned need, bool is_done)
{
    (void)is_done;
    if (admin.needs[need].until_ns == NEVER)
        admin.needs[need].since_ns = world.now_ns;
}

static void on_relief(unsigned need, bool is_done)
{
    (void)is_done;
    end(&admin.needs[need]);
}

static void relieve(enum need need)
{
    switch (need) {
    case NEED_MEMORY:
        tell(on_relief, need, "CONFIG SET maxmemory 0");
        break;
    case NEED_REPLICAS:
        tell(on_relief, need, "CONFIG SET min-replicas-to-write 0");
        break;
    case NEED_DISK:
        redis_break_disk(server_redis(), false);
        on_relief(need, true);
        break;
    case NEED_MASTER:
        tell(NULL, 0, "CONFIG SET replica-serve-stale-data yes");
        tell(on_relief, need, "REPLICAOF NO ONE");
        break;
    default:
        break;
    }
}

static void on_over(struct bell *bell)
{
    relieve((enum need)(bell - admin.over));
}

/* False: Redis has that need already. */
static bool begin_need(enum need need, uint64_t ns)
{
    if (!server_is_up() || admin.needs[need].until_ns == NEVER)
        return false;
    begin(&admin.needs[need]);
    world_ring_at(&admin.over[need], world.now_ns + ns);
    return true;
}

void admin_need_memory(uint64_t ns, uint64_t pick)
{
    (void)pick;
    if (begin_need(NEED_MEMORY, ns))
        tell(on_need, NEED_MEMORY, "CONFIG SET maxmemory 1");
}

void admin_need_replicas(uint64_t ns, uint64_t pick)
{
    (void)pick;
    if (begin_need(NEED_REPLICAS, ns))
        tell(on_need, NEED_REPLICAS, "CONFIG SET min-replicas-to-write 1");
}

void admin_need_disk(uint64_t ns, uint64_t pick)
{
    (void)pick;
    if (begin_need(NEED_DISK, ns))
        redis_break_disk(server_redis(), true);
}

void admin_need_master(uint64_t ns, uint64_t pick)
{
    if (!begin_need(NEED_MASTER, ns))
        return;
    if (pick % 3 == 0)
        tell(NULL, 0, "CONFIG SET replica-serve-stale-data no");
    tell(on_need, NEED_MASTER, "REPLICAOF 127.0.0.1 1");
}

/* A client that sends LIMIT while weir loads its scripts gets the errors of that loading. */
bool admin_excuses(const struct act *act, const struct reply *reply)
{
    uint64_t late_ns = act->is_decided ? LOAD_NS + links_late_ns() : 0;
    uint64_t from_ns = act->read_ns > late_ns ? act->read_ns - late_ns : 0;
    for (unsigned need = 0; need < N_NEEDS; need++) {
        bool is_replicas = need == NEED_MASTER && run.plan.servers > 0;
        bool is_on = admin.needs[need].until_ns > 0 && admin.needs[need].until_ns >= from_ns;
        for (unsigned i = 0; i < MARKS && marks[need][i] != NULL; i++)
            if ((is_on || is_replicas) && memmem(reply->text.at, reply->text.len, marks[need][i],
                                                 strlen(marks[need][i])) != NULL)
                return true;
    }
    return false;
}

/* ---- data, scripts, connections ---- */

static void on_flushed(unsigned which, bool is_done)
{
    (void)which;
    run.losses += is_done;
    if (is_done)
        run.changed_ns = world.now_ns;
}

void admin_flush(uint64_t ns, uint64_t pick)
{
    (void)ns;
    (void)pick;
    tell(on_flushed, 0, "FLUSHALL");
}

void admin_flush_scripts(uint64_t ns, uint64_t pick)
{
    (void)ns;
    tell(NULL, 0, pick % 2 == 0 ? "SCRIPT FLUSH" : "SCRIPT FLUSH ASYNC");
}

void admin_kill_script(uint64_t ns, uint64_t pick)
{
    (void)ns;
    (void)pick;
    tell_to_kill();
}

void admin_hear_stuck(bool is_killed)
{
    if (is_killed)
        admin.killed_ns = world.now_ns;
    else
        admin.needs[NEED_TIME].until_ns = world.now_ns + BUSY_KEPT_NS;
}

bool admin_may_have_killed(const struct act *act)
{
    return admin.killed_ns >= act->read_ns && admin.killed_ns > 0;
}

static void on_unpause(struct bell *bell)
{
    (void)bell;
    tell(NULL, 0, "CLIENT UNPAUSE");
}

void admin_pause(uint64_t ns, uint64_t pick)
{
    tell(NULL, 0, "CLIENT PAUSE %" PRIu64 " %s", 1 + ns / MS, pick % 3 == 0 ? "ALL" : "WRITE");
    if (pick % 4 == 0)
        world_ring_at(&admin.unpause, world.now_ns + ns / 2);
}

void admin_kill(uint64_t ns, uint64_t pick)
{
    (void)ns;
    uint64_t id = server_picked_id(pick >> 3);
    if (pick % 8 == 0)
        tell(NULL, 0, "CLIENT KILL TYPE normal");
    else if (pick % 8 == 1)
        tell(NULL, 0, "CLIENT KILL TYPE pubsub");
    else if (pick % 8 == 2)
        tell(NULL, 0, "CLIENT KILL USER u%u", (unsigned)(1 + (pick >> 3) % (USERS - 1)));
    else if (pick % 8 == 3)
        tell(NULL, 0, "CLIENT KILL USER default");
    else if (id != 0)
        tell(NULL, 0, "CLIENT KILL ID %" PRIu64, id);
}

/* ---- users ---- */

static void on_locked(unsigned user, bool is_done)
{
    if (is_done && admin.locks[user].until_ns == NEVER)
        admin.locks[user].since_ns = world.now_ns;
}

static void on_unlocked(unsigned user, bool is_done)
{
    (void)is_done;
    end(&admin.locks[user]);
}

static void unlock(unsigned user)
{
    if (admin.locks[user].until_ns != NEVER)
        return;
    admin.locks[user].since_ns = NEVER;
    tell(on_unlocked, user, "ACL SETUSER u%u on >pw%u.0 >pw%u.1 >pw%u.2 >pw%u.3 ~* &* +@all", user,
         user, user, user, user);
}

static void on_unlock(struct bell *bell)
{
    unlock((unsigned)(bell - admin.unlock));
}

static bool has_taken_any(unsigned user)
{
    for (unsigned token = 0; token < TOKENS; token++)
        if (admin.tokens[user * TOKENS + token].until_ns == NEVER)
            return true;
    return false;
}

void admin_lock_user(uint64_t ns, uint64_t pick)
{
    unsigned user = 1 + (unsigned)(pick >> 1) % (USERS - 1);
    if (!server_is_up() || admin.locks[user].until_ns == NEVER || has_taken_any(user))
        return;
    admin.locks[user] = (struct spell){NEVER, NEVER};
    tell(on_locked, user, pick % 2 == 0 ? "ACL DELUSER u%u" : "ACL SETUSER u%u off", user);
    world_ring_at(&admin.unlock[user], world.now_ns + ns);
}

/* ---- passwords of users ---- */

static void on_taken(unsigned which, bool is_done)
{
    if (!is_done || admin.tokens[which].until_ns != NEVER || admin.gives[which])
        return;
    admin.tokens[which].since_ns = world.now_ns;
    proof_laws_note_taken(which / TOKENS, which % TOKENS);
}

static void on_given(unsigned which, bool is_done)
{
    (void)is_done;
    end(&admin.tokens[which]);
}

static void give(unsigned which)
{
    if (admin.tokens[which].until_ns != NEVER)
        return;
    admin.tokens[which].since_ns = NEVER;
    admin.gives[which] = true;
    proof_laws_note_given(which / TOKENS, which % TOKENS);
    tell(on_given, which, "ACL SETUSER u%u >pw%u.%u", which / TOKENS, which / TOKENS,
         which % TOKENS);
}

static void on_give(struct bell *bell)
{
    give((unsigned)(bell - admin.give));
}

/* A client that knows only this password is logged out. */
void admin_take_token(uint64_t ns, uint64_t pick)
{
    unsigned user = 1 + (unsigned)(pick % (USERS - 1));
    unsigned token = (unsigned)(pick / USERS % TOKENS);
    unsigned which = user * TOKENS + token;
    if (!server_is_up() || admin.locks[user].until_ns == NEVER ||
        admin.tokens[which].until_ns == NEVER)
        return;
    admin.tokens[which] = (struct spell){NEVER, NEVER};
    admin.gives[which] = false;
    tell(NULL, 0, "ACL SETUSER u%u <pw%u.%u", user, user, token);
    tell(on_taken, which, "CLIENT KILL USER u%u", user);
    world_ring_at(&admin.give[which], world.now_ns + ns);
}

bool admin_has_taken(unsigned user, unsigned token, const struct act *act)
{
    const struct spell *taken = &admin.tokens[user * TOKENS + token];
    return user > 0 && taken->until_ns == NEVER && taken->since_ns < act->read_ns;
}

bool admin_may_have_taken(unsigned user, unsigned token, const struct act *act)
{
    const struct spell *taken = &admin.tokens[user * TOKENS + token];
    return user > 0 && taken->until_ns > 0 && taken->until_ns >= act->read_ns;
}

bool admin_has_locked(unsigned user, const struct act *act)
{
    return user > 0 && admin.locks[user].until_ns == NEVER &&
           admin.locks[user].since_ns < act->read_ns;
}

bool admin_may_have_locked(unsigned user, const struct act *act)
{
    return user > 0 && admin.locks[user].until_ns > 0 && admin.locks[user].until_ns >= act->read_ns;
}

/* ---- the password of Redis ---- */

static void on_password(unsigned is_wanted, bool is_done)
{
    admin.wants_password = is_done ? is_wanted : admin.wants_password;
    admin.refused_ns = 0;
    admin.password_ns = --admin.n_changing == 0 ? world.now_ns + ADMIN_PASSWORD_NS : NEVER;
}

void admin_change_password(void)
{
    if (!server_is_up() || admin.n_changing > 0)
        return;
    admin.n_changing++;
    admin.password_ns = NEVER;
    if (admin.wants_password)
        tell(on_password, false, "CONFIG SET requirepass \"\"");
    else
        tell(on_password, true, "CONFIG SET requirepass \"" PASSWORD "\"");
}

bool admin_lets_in(void)
{
    return !admin.wants_password;
}

bool admin_is_changing(uint64_t since_ns)
{
    return since_ns < admin.password_ns;
}

bool admin_may_refuse(const struct act *act)
{
    bool is_noticed = admin.refused_ns != 0 && act->read_ns > admin.refused_ns + ADMIN_PASSWORD_NS;
    return admin.wants_password || admin_is_changing(act->read_ns) || !is_noticed;
}

void admin_note_refused(const struct act *act)
{
    bool is_since = act->read_ns + ADMIN_PASSWORD_NS > admin.password_ns;
    if (is_since && admin.refused_ns == 0)
        admin.refused_ns = world.now_ns;
}

/* ---- start and end ---- */

void admin_rest(void)
{
    if (!server_is_up())
        return;
    for (unsigned need = 0; need < N_NEEDS; need++)
        if (admin.needs[need].until_ns == NEVER) {
            world_silence(&admin.over[need]);
            relieve((enum need)need);
        }
    for (unsigned user = 0; user < USERS; user++) {
        world_silence(&admin.unlock[user]);
        unlock(user);
    }
    for (unsigned which = 0; which < USERS * TOKENS; which++) {
        world_silence(&admin.give[which]);
        give(which);
    }
    world_silence(&admin.unpause);
    tell(NULL, 0, "CLIENT UNPAUSE");
    tell_to_kill();
}

void admin_note_restart(void)
{
    admin.lines.n = 0;
    admin.is_asked = false;
    world_silence(&admin.again);
    for (unsigned need = 0; need < N_NEEDS; need++)
        if (admin.needs[need].until_ns == NEVER) {
            world_silence(&admin.over[need]);
            end(&admin.needs[need]);
        }
    for (unsigned user = 0; user < USERS; user++)
        if (admin.locks[user].until_ns == NEVER) {
            world_silence(&admin.unlock[user]);
            end(&admin.locks[user]);
        }
    for (unsigned which = 0; which < USERS * TOKENS; which++)
        if (admin.tokens[which].until_ns == NEVER) {
            world_silence(&admin.give[which]);
            proof_laws_note_given(which / TOKENS, which % TOKENS);
            end(&admin.tokens[which]);
        }
    bool is_other = admin.wants_password != run.plan.has_password || admin.n_changing > 0;
    admin.wants_password = run.plan.has_password;
    admin.n_changing = 0;
    if (is_other)
        admin.password_ns = world.now_ns + ADMIN_PASSWORD_NS;
}

void admin_start(void)
{
    admin = (struct admin){.wants_password = run.plan.has_password};
    for (unsigned need = 0; need < N_NEEDS; need++)
        admin.over[need].ring = on_over;
    for (unsigned user = 0; user < USERS; user++)
        admin.unlock[user].ring = on_unlock;
    for (unsigned which = 0; which < USERS * TOKENS; which++)
        admin.give[which].ring = on_give;
    admin.unpause.ring = on_unpause;
    admin.again.ring = on_again;
    server_hear(on_told, on_left);
}
