#include "run/topology/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* ---- reports of finders ---- */

void member_take_table(struct member *member, struct command_table *table)
{
    if (member->table != NULL)
        command_table_put(member->table);
    member->table = table;
}

void member_note_word(struct member *member)
{
    struct finder_word word = finder_word(member->finder);
    if (word.role != member->word.role || word.is_lost != member->word.is_lost)
        member->changed_ns = clock_ns();
    member->word = word;
}

/* ---- adding and dropping ---- */

void members_init(struct members *members, struct loop *loop,
                  const struct finder_settings *settings, const struct finder_ops *ops, void *arg)
{
    *members = (struct members){.loop = loop, .settings = *settings, .ops = ops, .arg = arg};
}

struct member *members_add(struct members *members, const char *key, const struct address *dialled)
{
    struct member *member = mem_zalloc(1, sizeof *member);
    struct finder_settings settings = members->settings;
    member->members = members;
    snprintf(member->key, sizeof member->key, "%s", key);
    member->address = *dialled;
    member->address.host = mem_strdup(dialled->host);
    settings.address = &member->address;
    member->finder = finder_open(members->loop, &settings, members->ops, member);
    members->all = mem_realloc(members->all, members->n + 1, sizeof(struct member *));
    members->all[members->n++] = member;
    if (members->is_started)
        finder_start(member->finder);
    if (members->probes)
        finder_probe(member->finder);
    return member;
}

static void free_member(struct member *member)
{
    finder_close(member->finder);
    member_take_table(member, NULL);
    address_fini(&member->address);
    free(member);
}

void members_drop(struct members *members, struct member *member)
{
    size_t i = 0;
    while (members->all[i] != member)
        i++;
    members->n--;
    memmove(&members->all[i], &members->all[i + 1], (members->n - i) * sizeof(struct member *));
    free_member(member);
}

void members_fini(struct members *members)
{
    for (size_t i = 0; i < members->n; i++)
        free_member(members->all[i]);
    free(members->all);
    members->all = NULL;
    members->n = 0;
}

struct member *members_find(const struct members *members, const char *key)
{
    for (size_t i = 0; key != NULL && i < members->n; i++)
        if (strcmp(members->all[i]->key, key) == 0)
            return members->all[i];
    return NULL;
}

/* ---- all members ---- */

void members_start(struct members *members)
{
    members->is_started = true;
    for (size_t i = 0; i < members->n; i++)
        finder_start(members->all[i]->finder);
}

void members_probe(struct members *members)
{
    members->probes = true;
    for (size_t i = 0; i < members->n; i++)
        finder_probe(members->all[i]->finder);
}

void members_set_password(struct members *members, const struct credentials *credentials)
{
    members->settings.credentials = *credentials;
    for (size_t i = 0; i < members->n; i++)
        finder_set_password(members->all[i]->finder, credentials);
}

void members_look(const struct members *members)
{
    for (size_t i = 0; i < members->n; i++)
        finder_look(members->all[i]->finder);
}

void members_ask_roles(const struct members *members)
{
    for (size_t i = 0; i < members->n; i++)
        finder_ask_role(members->all[i]->finder);
}

bool members_are_settled(const struct members *members)
{
    for (size_t i = 0; i < members->n; i++)
        if (!members->all[i]->is_settled)
            return false;
    return true;
}
