/*
 * Tests of parsing CLUSTER NODES of all versions. A text that contradicts itself is refused as a
 * whole, with a reason.
 *
 * In texts `$a` stands for a name of 40 times `a`. Results are printed as `a* master 127.0.0.1:7000
 * e1 0-5460`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/node/cluster_nodes.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define REST " - 0 0 1 connected"
#define ALL REST " 0-16383\n"
#define ONE(address) "$a " address " myself,master" ALL
#define TWO(line) "$a 127.0.0.1:7000@17000 myself,master" ALL line "\n"

static const struct row {
    const char *about, *text;
    const char *read; /* expected result; NULL: refused */
    const char *why;  /* expected reason; NULL: accepted */
} rows[] = {
    /* ---- versions ---- */
    {"6.2, three masters and a replica",
     "$a 127.0.0.1:7000@17000 myself,master - 0 1700000000000 1 connected 0-5460\n"
     "$b 127.0.0.1:7001@17001 master - 0 1700000000001 2 connected 5461-10922\n"
     "$c 127.0.0.1:7002@17002 master - 0 1700000000002 3 connected 10923-16383\n"
     "$d 127.0.0.1:7003@17003 slave $a 0 1700000000003 1 connected\n",
     "a* master 127.0.0.1:7000 e1 0-5460; b master 127.0.0.1:7001 e2 5461-10922; c master 127.0.0.1:7002 e3 "
     "10923-16383; "
     "d replica-of-a 127.0.0.1:7003 e1",
     NULL},
    {"7.0 with a host name", ONE("10.0.0.1:7000@17000,node-1.example"),
     "a* master 10.0.0.1:7000/node-1.example e1 0-16383", NULL},
    {"7.2 with aux fields", ONE("10.0.0.1:7000@17000,node-1,shard-id=0123456789abcdef"),
     "a* master 10.0.0.1:7000/node-1 e1 0-16383", NULL},
    {"7.2, aux fields and no host name", ONE("10.0.0.1:7000@17000,,shard-id=01,tls-port=0"),
     "a* master 10.0.0.1:7000 e1 0-16383", NULL},
    {"Valkey 8, aux fields",
     ONE("10.0.0.1:7000@17000,,tls-port=7100,shard-id=01,nodename=n,availability-zone=z"),
     "a* master 10.0.0.1:7000 e1 0-16383", NULL},
    {"before 4.0, without a bus port", ONE("10.0.0.1:7000"), "a* master 10.0.0.1:7000 e1 0-16383",
     NULL},
    {"the word replica", TWO("$b 127.0.0.1:7001@17001 replica $a 0 0 1 connected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b replica-of-a 127.0.0.1:7001 e1", NULL},
    {"nofailover", TWO("$b 127.0.0.1:7001@17001 slave,nofailover $a 0 0 1 connected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b replica-of-a 127.0.0.1:7001 e1", NULL},
    {"flags of another version", TWO("$b 127.0.0.1:7001@17001 master,sunny" REST),
     "a* master 127.0.0.1:7000 e1 0-16383; b master 127.0.0.1:7001 e1", NULL},
    {"a line of vars, as in nodes.conf", ONE("h:1@2") "vars currentEpoch 6 lastVoteEpoch 0\n",
     "a* master h:1 e1 0-16383", NULL},
    {"lines that end with CRLF",
     "$a 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-16383\r\n",
     "a* master 10.0.0.1:7000 e1 0-16383", NULL},
    {"no newline at the end", "$a 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-16383",
     "a* master 10.0.0.1:7000 e1 0-16383", NULL},
    {"empty lines", "\n\n" ONE("10.0.0.1:7000@17000") "\n", "a* master 10.0.0.1:7000 e1 0-16383",
     NULL},
    {"two blanks between words",
     "$a  10.0.0.1:7000@17000  myself,master  -  0  0  1  connected  0-16383\n",
     "a* master 10.0.0.1:7000 e1 0-16383", NULL},
    {"a TLS port in the place of the port", ONE("10.0.0.1:7100@17000"),
     "a* master 10.0.0.1:7100 e1 0-16383", NULL},

    /* ---- addresses ---- */
    {"IPv6", ONE("::1:7000@17000"), "a* master ::1:7000 e1 0-16383", NULL},
    {"IPv6, whole", ONE("2001:db8:0:0:0:0:0:1:7000@17000,v6.example"),
     "a* master 2001:db8:0:0:0:0:0:1:7000/v6.example e1 0-16383", NULL},
    {"IPv6 with a scope", ONE("fe80::1%eth0:7000@17000"), "a* master fe80::1%eth0:7000 e1 0-16383",
     NULL},
    {"a name in place of an address", ONE("redis-0.redis.svc:7000@17000"),
     "a* master redis-0.redis.svc:7000 e1 0-16383", NULL},
    {"its own host is not known yet", ONE(":7000@17000"), "a* master ?:7000 e1 0-16383", NULL},
    {"its own host is ?", ONE("?:7000@17000"), "a* master ?:7000 e1 0-16383", NULL},
    {"its host name is ?", ONE("10.0.0.1:7000@17000,?"), "a* master 10.0.0.1:7000 e1 0-16383",
     NULL},
    {"another's host is ?", TWO("$b ?:7001@17001 master" REST),
     "a* master 127.0.0.1:7000 e1 0-16383; b master ?:7001 e1", NULL},
    {"another's host is empty", TWO("$b :7001@17001 master" REST),
     "a* master 127.0.0.1:7000 e1 0-16383; b master ?:7001 e1", NULL},
    {"a node without an address", TWO("$b :0@0 master,noaddr - 0 0 1 disconnected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b master ?:0 unlinked e1", NULL},
    {"an address that does not count",
     TWO("$b 10.0.0.1:7001@17001 master,fail,noaddr - 0 0 1 disconnected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b master ?:0 fail unlinked e1", NULL},
    {"the greatest port", ONE("h:65535@65535"), "a* master h:65535 e1 0-16383", NULL},
    {"one address, and the older node is failed",
     "$a h:1@2 myself,master - 0 0 1 connected 0-5\n$b h:1@2 master,fail - 0 0 2 connected 6-16383\n",
     "a* master h:1 e1 0-5; b master h:1 fail e2 6-16383", NULL},
    {"one address, and one serves nothing",
     "$a h:1@2 myself,master" ALL "$b h:1@2 slave $a 0 0 1 connected\n",
     "a* master h:1 e1 0-16383; b replica-of-a h:1 e1", NULL},

    /* ---- states ---- */
    {"handshakes are passed over", TWO("$b 127.0.0.1:7001@0 handshake - 0 0 0 disconnected"),
     "a* master 127.0.0.1:7000 e1 0-16383", NULL},
    {"a handshake with port 0", TWO("$b :0@0 master,handshake - 0 0 0 disconnected"),
     "a* master 127.0.0.1:7000 e1 0-16383", NULL},
    {"noflags", TWO("$b 127.0.0.1:7001@17001 noflags - 0 0 0 connected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b unknown 127.0.0.1:7001 e0", NULL},
    {"fail?", TWO("$b 127.0.0.1:7001@17001 master,fail? - 1 1 2 connected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b master 127.0.0.1:7001 fail? e2", NULL},
    {"fail", TWO("$b 127.0.0.1:7001@17001 master,fail - 1 1 2 disconnected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b master 127.0.0.1:7001 fail unlinked e2", NULL},
    {"a replica whose master is not known", TWO("$b 127.0.0.1:7001@17001 slave - 0 0 1 connected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b replica 127.0.0.1:7001 e1", NULL},
    {"a replica of a node that is not there",
     TWO("$b 127.0.0.1:7001@17001 slave $f 0 0 1 connected"),
     "a* master 127.0.0.1:7000 e1 0-16383; b replica-of-f 127.0.0.1:7001 e1", NULL},
    {"a replica that answers", "$a h:1@2 master" ALL "$b h:2@3 myself,slave $a 0 0 1 connected\n",
     "a master h:1 e1 0-16383; b* replica-of-a h:2 e1", NULL},
    {"the node itself counts as linked", "$a h:1@2 myself,master - 0 0 1 disconnected 5\n",
     "a* master h:1 e1 5", NULL},
    {"no node serves anything", "$a h:1@2 myself,master" REST "\n", "a* master h:1 e1", NULL},
    {"a great epoch", "$a h:1@2 myself,master - 0 0 9223372036854775807 connected 0\n",
     "a* master h:1 e9223372036854775807 0", NULL},

    /* ---- slots ---- */
    {"single slots and ranges", "$a h:1@2 myself,master" REST " 0 2-3 5 16383\n",
     "a* master h:1 e1 0 2-3 5 16383", NULL},
    {"in any order", "$a h:1@2 myself,master" REST " 5 0-3\n", "a* master h:1 e1 0-3 5", NULL},
    {"a range of one", "$a h:1@2 myself,master" REST " 7-7\n", "a* master h:1 e1 7", NULL},
    {"a slot that leaves", "$a h:1@2 myself,master" REST " 0-16383 [93->-$b]\n",
     "a* master h:1 e1 0-16383 93->b", NULL},
    {"a slot that comes", "$a h:1@2 myself,master" REST " 1 [77-<-$b]\n",
     "a* master h:1 e1 1 77<-b", NULL},
    {"both", "$a h:1@2 myself,master" REST " 93 [93->-$b] [77-<-$c]\n",
     "a* master h:1 e1 93 93->b 77<-c", NULL},
    {"another's do not count", TWO("$b h:2@3 master" REST " [93->-$a]"),
     "a* master 127.0.0.1:7000 e1 0-16383; b master h:2 e1", NULL},

    /* ---- refused texts ---- */
    {"nothing", "", NULL, "no node has the flag myself"},
    {"no myself", "$a h:1@2 master" ALL, NULL, "no node has the flag myself"},
    {"two myselves", TWO("$b h:1@2 myself,master" REST), NULL, "two nodes have the flag myself"},
    {"myself in a handshake", "$a h:1@2 myself,handshake" REST "\n", NULL,
     "no node has the flag myself"},
    {"a node twice", TWO("$a h:1@2 master" REST), NULL, "node $a is listed twice"},
    {"an address twice", "$a h:1@2 myself,master" REST " 0-5\n$b h:1@2 master" REST " 6-7\n", NULL,
     "nodes $a and $b have the same address"},
    {"port 0", ONE("10.0.0.1:0@17000"), NULL, "node $a has port 0"},
    {"another's port 0", TWO("$b 10.0.0.1:0@0 master" REST), NULL, "node $b has port 0"},
    {"a port beyond", ONE("10.0.0.1:65536@17000"), NULL, "node $a has no port"},
    {"a port below", ONE("10.0.0.1:-1@17000"), NULL, "node $a has no port"},
    {"a port that is none", ONE("10.0.0.1:http@17000"), NULL, "node $a has no port"},
    {"no port", ONE("10.0.0.1"), NULL, "node $a has no port"},
    {"an empty port", ONE("10.0.0.1:@17000"), NULL, "node $a has no port"},
    {"a host with a slash", ONE("10.0.0.1/8:7000@17000"), NULL, "node $a has an invalid host"},
    {"a host with an escape", ONE("\33[31m:7000@17000"), NULL, "node $a has an invalid host"},
    {"a host name with a slash", ONE("10.0.0.1:7000@17000,a/b"), NULL,
     "node $a has an invalid host name"},
    {"a slot beyond", "$a h:1@2 myself,master" REST " 16384\n", NULL,
     "node $a has slots from 16384 to 16384: a slot is a number below 16384"},
    {"20,000 slots", "$a h:1@2 myself,master" REST " 0-19999\n", NULL,
     "node $a has slots from 0 to 19999: a slot is a number below 16384"},
    {"a range that runs back", "$a h:1@2 myself,master" REST " 5-3\n", NULL,
     "node $a has slots from 5 to 3: a slot is a number below 16384"},
    {"a slot twice", "$a h:1@2 myself,master" REST " 0-5 5\n", NULL, "slot 5 is served twice"},
    {"a slot at two nodes", TWO("$b h:1@2 master" REST " 93"), NULL, "slot 93 is served twice"},
    {"slots that are no numbers", "$a h:1@2 myself,master" REST " all\n", NULL,
     "node $a has slots that are not numbers"},
    {"a range without an end", "$a h:1@2 myself,master" REST " 5-\n", NULL,
     "node $a has slots that are not numbers"},
    {"a range without a beginning", "$a h:1@2 myself,master" REST " -5\n", NULL,
     "node $a has slots that are not numbers"},
    {"a number too great for anything", "$a h:1@2 myself,master" REST " 99999999999999999999\n",
     NULL, "node $a has slots that are not numbers"},
    {"slots of a replica", TWO("$b h:1@2 slave $a 0 0 1 connected 5"), NULL,
     "node $b serves slots but is not a "
     "master"},
    {"a slot on its way that is cut off", "$a h:1@2 myself,master" REST " [93->-abc]\n", NULL,
     "line 1 has a migrating slot that weir cannot parse"},
    {"a slot on its way to nobody", "$a h:1@2 myself,master" REST " [93->-]\n", NULL,
     "line 1 has a migrating slot that weir cannot parse"},
    {"a slot on its way beyond", "$a h:1@2 myself,master" REST " [16384->-$b]\n", NULL,
     "line 1 has a migrating slot that weir cannot parse"},
    {"a slot on its way sideways", "$a h:1@2 myself,master" REST " [93-=-$b]\n", NULL,
     "line 1 has a migrating slot that weir cannot parse"},
    {"only a bracket", "$a h:1@2 myself,master" REST " [\n", NULL,
     "line 1 has a migrating slot that weir cannot "
     "parse"},
    {"a line that is incomplete", TWO("$b 127.0.0.1:7001@17001 master - 0"), NULL,
     "line 2 is incomplete"},
    {"a name that is too short", "abc h:1@2 myself,master" ALL, NULL,
     "line 1 does not begin with the name of a node"},
    {"a name with capitals", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA h:1@2 myself,master" ALL,
     NULL, "line 1 does not begin with the name of a node"},
    {"a master without a name", TWO("$b h:1@2 slave somebody 0 0 1 connected"), NULL,
     "node $b has a master without a name"},
    {"an epoch that is none", "$a h:1@2 myself,master - 0 0 x connected 0\n", NULL,
     "node $a has a config epoch that is not a number"},
    {"an epoch below 0", "$a h:1@2 myself,master - 0 0 -1 connected 0\n", NULL,
     "node $a has a config epoch that is not a number"},
    {"an epoch beyond", "$a h:1@2 myself,master - 0 0 9223372036854775808 connected 0\n", NULL,
     "node $a has a config epoch that is not a number"},
    {"what CLUSTER SLOTS answers", "*3\r\n*3\r\n:0\r\n:5460\r\n", NULL, "line 1 is incomplete"},
    {"an error", "ERR This instance has cluster support disabled", NULL, "line 1 is incomplete"},
};

/* Replaces each `$a` by the name. */
static void expand(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text != '\0' && n + CLUSTER_ID < size; text++) {
        if (*text != '$') {
            out[n++] = *text;
            continue;
        }
        memset(out + n, *++text, CLUSTER_ID - 1);
        n += CLUSTER_ID - 1;
    }
    out[n] = '\0';
}

static size_t print_slots(const struct cluster_nodes *nodes, size_t number, char *out, size_t size)
{
    size_t n = 0;
    for (size_t slot = 0, last; slot < SLOT_COUNT; slot++) {
        if (nodes->owners[slot] != number)
            continue;
        for (last = slot; last + 1 < SLOT_COUNT && nodes->owners[last + 1] == number; last++)
            ;
        n += (size_t)(last > slot ? snprintf(out + n, size - n, " %zu-%zu", slot, last)
                                  : snprintf(out + n, size - n, " %zu", slot));
        slot = last;
    }
    return n;
}

static void print(const struct cluster_nodes *nodes, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        const struct cluster_node *node = &nodes->nodes[i];
        n += (size_t)snprintf(out + n, size - n, "%s%c%s %s", i > 0 ? "; " : "", node->id[0],
                              i == nodes->myself ? "*" : "",
                              node->is_master    ? "master"
                              : node->is_replica ? "replica"
                                                 : "unknown");
        if (node->master_id[0] != '\0')
            n += (size_t)snprintf(out + n, size - n, "-of-%c", node->master_id[0]);
        n += (size_t)snprintf(out + n, size - n, " %s:%u%s%s%s%s%s e%llu",
                              node->host[0] != '\0' ? node->host : "?", node->port,
                              node->hostname[0] != '\0' ? "/" : "", node->hostname,
                              node->is_failing ? " fail?" : "", node->is_failed ? " fail" : "",
                              node->is_linked ? "" : " unlinked", (unsigned long long)node->epoch);
        n += print_slots(nodes, i, out + n, size - n);
        for (size_t m = 0; i == nodes->myself && m < nodes->n_moves; m++)
            n +=
                (size_t)snprintf(out + n, size - n, " %u%s%c", nodes->moves[m].slot,
                                 nodes->moves[m].is_import ? "<-" : "->", nodes->moves[m].other[0]);
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[2048], read[2048] = "", why[512] = "", expected[512] = "";
        struct cluster_nodes nodes;
        expand(rows[i].text, text, sizeof text);
        bool is_read = cluster_nodes_read(&nodes, slice_str(text), (struct why){why, sizeof why});
        if (is_read != (rows[i].read != NULL))
            fail_msg("%s: %s", rows[i].about, is_read ? "it is read" : why);
        if (is_read) {
            print(&nodes, read, sizeof read);
            if (strcmp(read, rows[i].read) != 0)
                fail_msg("%s:\n%s\nand not\n%s", rows[i].about, read, rows[i].read);
            cluster_nodes_fini(&nodes);
        } else {
            expand(rows[i].why, expected, sizeof expected);
            if (strcmp(why, expected) != 0)
                fail_msg("%s:\n%s\nand not\n%s", rows[i].about, why, expected);
            assert_null(nodes.nodes);
            assert_int_equal(nodes.n, 0);
        }
    }
}

static void test_find(void **state)
{
    (void)state;
    char text[1024], id[64], why[256];
    struct cluster_nodes nodes;
    expand(TWO("$b h:1@2 master" REST), text, sizeof text);
    assert_true(cluster_nodes_read(&nodes, slice_str(text), (struct why){why, sizeof why}));
    expand("$b", id, sizeof id);
    assert_int_equal(cluster_nodes_find(&nodes, id), 1);
    assert_int_equal(cluster_nodes_find(&nodes, "b"), CLUSTER_NOBODY);
    cluster_nodes_fini(&nodes);
}

/* A heap text of n nodes. The first is the answering one. */
static char *many(size_t n, size_t *len)
{
    char *text = malloc(n * 128 + 1);
    *len = 0;
    for (size_t i = 0; i < n; i++)
        *len += (size_t)sprintf(text + *len,
                                "%040zx 10.%zu.%zu.1:7000@17000 %smaster - 0 0 %zu connected %zu\n",
                                i, i / 256, i % 256, i == 0 ? "myself," : "", i, i);
    return text;
}

static void test_bounds(void **state)
{
    (void)state;
    char why[256];
    struct cluster_nodes nodes;
    size_t len;
    char *text = many(CLUSTER_NODES_MOST, &len);
    assert_true(cluster_nodes_read(&nodes, slice_of(text, len), (struct why){why, sizeof why}));
    assert_int_equal(nodes.n, CLUSTER_NODES_MOST);
    assert_int_equal(nodes.owners[999], 999);
    cluster_nodes_fini(&nodes);
    free(text);
    text = many(CLUSTER_NODES_MOST + 1, &len);
    assert_false(cluster_nodes_read(&nodes, slice_of(text, len), (struct why){why, sizeof why}));
    assert_string_equal(why, "there are more than 1000 nodes");
    free(text);
    len = 10 << 20;
    text = malloc(len);
    memset(text, 'a', len);
    assert_false(cluster_nodes_read(&nodes, slice_of(text, len), (struct why){why, sizeof why}));
    assert_string_equal(why, "the reply has 10485760 bytes, and weir accepts at most 1048576");
    free(text);
}

/* However a text is cut, no byte beyond its end is read. */
static void test_cuts(void **state)
{
    (void)state;
    char text[1024], why[256];
    expand("$a ::1:7000@17000,h,x=1 myself,master - 0 0 1 connected 0-5 [93->-$b] [77-<-$b]\n"
           "$b h:2@3 slave,fail? $a 0 0 1 disconnected\n",
           text, sizeof text);
    for (size_t len = 0; len <= strlen(text); len++) {
        char *copy = malloc(len > 0 ? len : 1);
        struct cluster_nodes nodes;
        memcpy(copy, text, len);
        if (cluster_nodes_read(&nodes, slice_of(copy, len), (struct why){why, sizeof why}))
            cluster_nodes_fini(&nodes);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
