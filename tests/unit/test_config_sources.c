/* Tests of the three forms of `upstream`: their meaning, and the errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "config_kit.h"
#include "run/config/config_lint.h"

/* ---- accepted forms ---- */

static const struct form {
    const char *text;
    enum source_form form;
    const char *master_name; /* NULL: none */
    const char *addresses;   /* as printed, separated by ", " */
} forms[] = {
    {"", SOURCES_SERVER, NULL, "127.0.0.1:6379"},
    {"upstream = a:1\n", SOURCES_SERVER, NULL, "a:1"},
    {"upstream = unix:/run/redis@1.sock\n", SOURCES_SERVER, NULL, "unix:/run/redis@1.sock"},
    {"upstream = tls:a:1\n", SOURCES_SERVER, NULL, "tls:a:1"},
    {"upstream = a:1, b:2\n", SOURCES_LIST, NULL, "a:1, b:2"},
    {"upstream = a:1\nupstream = b:2\n", SOURCES_LIST, NULL, "a:1, b:2"},
    {"upstream = a:1, b:2\n[weir]\nupstream = [::1]:3\n", SOURCES_LIST, NULL, "a:1, b:2, [::1]:3"},
    {"upstream = unix:/a, unix:/b\n", SOURCES_LIST, NULL, "unix:/a, unix:/b"},
    {"upstream = a:1, unix:/a\n", SOURCES_LIST, NULL, "a:1, unix:/a"},
    {"upstream = tls:a:1, TLS:b:2\n", SOURCES_LIST, NULL, "tls:a:1, tls:b:2"},
    {"upstream = sentinel:m@a:1\n", SOURCES_SENTINEL, "m", "a:1"},
    {"upstream = Sentinel: m @ a:1 ,b:2\n", SOURCES_SENTINEL, "m", "a:1, b:2"},
    {"upstream = sentinel:my.master-1_x@a:1, b:2\nupstream = c:3\n", SOURCES_SENTINEL,
     "my.master-1_x", "a:1, b:2, c:3"},
    {"upstream = sentinel:a:b@tls:[::1]:1\n", SOURCES_SENTINEL, "a:b", "tls:[::1]:1"},
    {"upstream = sentinel:6379\n", SOURCES_SERVER, NULL, "sentinel:6379"},
    {"upstream = sentinel:6379, sentinel:6380\n", SOURCES_LIST, NULL,
     "sentinel:6379, sentinel:6380"},
    {"upstream = cluster:7000\n", SOURCES_SERVER, NULL, "cluster:7000"},
    {"upstream = cluster:a:7000\n", SOURCES_CLUSTER, NULL, "a:7000"},
    {"upstream = Cluster: a:1 ,b:2\nupstream = [::1]:3\n", SOURCES_CLUSTER, NULL,
     "a:1, b:2, [::1]:3"},
    {"upstream = cluster:tls:a:1, tls:b:2\n", SOURCES_CLUSTER, NULL, "tls:a:1, tls:b:2"},
    {"upstream = cluster:cluster:7000, b:7000\n", SOURCES_CLUSTER, NULL, "cluster:7000, b:7000"},
    {"upstream = a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1\n", SOURCES_LIST,
     NULL, "a:1, b:1, c:1, d:1, e:1, f:1, g:1, h:1, i:1, j:1, k:1, l:1, m:1, n:1, o:1, p:1"},
};

static void print_addresses(const struct sources *sources, char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < sources->n; i++) {
        char text[512];
        address_print(&sources->addresses[i], text, sizeof text);
        len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? ", " : "", text);
    }
}

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char text[1024], addresses[1024] = "";
        snprintf(text, sizeof text, "[weir]\n%s", forms[i].text);
        struct config *config = load_text(text);
        if (config == NULL || said.text[0] != '\0')
            fail_msg("%s: %s", forms[i].text, said.text);
        const struct sources *sources = &config->sources;
        print_addresses(sources, addresses, sizeof addresses);
        assert_string_equal(addresses, forms[i].addresses);
        assert_int_equal(sources->form, forms[i].form);
        if (forms[i].master_name == NULL)
            assert_null(sources->master_name);
        else
            assert_string_equal(sources->master_name, forms[i].master_name);
        bool is_replicated = forms[i].form == SOURCES_LIST || forms[i].form == SOURCES_SENTINEL;
        assert_int_equal(sources_are_replicated(sources), is_replicated);
        assert_int_equal(sources_lead_on(sources), forms[i].form != SOURCES_SERVER);
        config_free(config);
    }
}

/* ---- errors ---- */

#define AT_KEY(key) "weir.conf:2: [weir] " key ": "
#define AT AT_KEY("upstream")

static const struct mistake mistakes[] = {
    {"[weir]\nupstream = sentinel:\n",
     AT "the name of the master is missing: write upstream = sentinel:NAME@HOST:26379\n"},
    {"[weir]\nupstream = sentinel:mymaster\n",
     AT "the name of the master is missing: write upstream = sentinel:NAME@HOST:26379\n"},
    {"[weir]\nupstream = sentinel:10.0.0.1:26379, 10.0.0.2:26379\n",
     AT "the name of the master is missing: write upstream = sentinel:NAME@10.0.0.1:26379\n"},
    {"[weir]\nupstream = sentinel:@10.0.0.1:26379\n",
     AT "the name of the master is missing: write upstream = sentinel:NAME@HOST:26379\n"},
    {"[weir]\nupstream = sentinel:my master@10.0.0.1:26379\n",
     AT "the name of the master is missing: write upstream = sentinel:NAME@HOST:26379\n"},
    {"[weir]\nupstream = sentinel:m@\n",
     AT "the address of a sentinel is missing: write upstream = sentinel:m@HOST:26379\n"},
    {"[weir]\nupstream = sentinel:m@, a:1\n",
     AT "the address of a sentinel is missing: write upstream = sentinel:m@HOST:26379\n"},
    {"[weir]\nupstream = sentinel:m@10.0.0.1\n",
     AT "\"10.0.0.1\" has no port: write 10.0.0.1:26379\n"},
    {"[weir]\nupstream = sentinel:m@a:1, b\n", AT "\"b\" has no port: write b:26379\n"},
    {"[weir]\nupstream = sentinel:m@a:1, 26379\n",
     AT "\"26379\" is a port without a host: write 127.0.0.1:26379\n"},
    {"[weir]\nupstream = sentinel:m@a:0\n",
     AT "\"0\" is not a port: a port is a number from 1 to 65535\n"},
    {"[weir]\nupstream = sentinel:m@unix:/run/s.sock\n",
     AT "a sentinel cannot have a unix socket: write HOST:26379\n"},
    {"[weir]\nupstream = sentinel:m@a:1, unix:/run/s.sock\n",
     AT "a sentinel cannot have a unix socket: write HOST:26379\n"},
    {"[weir]\nupstream = sentinel:m@a:1, sentinel:m@b:1\n",
     AT "write sentinel:NAME@ only before the first sentinel, and the others as HOST:PORT\n"},
    {"[weir]\nupstream = sentinel:m@a:1\nupstream = sentinel:n@b:1\n",
     "weir.conf:3: [weir] upstream: write sentinel:NAME@ only before the first sentinel, and the others as "
     "HOST:PORT\n"},
    {"[weir]\nupstream = a:1, sentinel:m@b:1\n", AT
     "upstream names servers or sentinels, not both: write upstream = sentinel:NAME@HOST:26379, and only sentinels "
     "after it\n"},
    {"[weir]\nupstream = sentinel:m@a:1, cluster:a:7000\n", AT
     "upstream names servers, sentinels or nodes of a cluster, not two of these: write upstream = cluster:HOST:PORT, "
     "and only its nodes after it\n"},
    {"[weir]\nupstream = a:1, cluster:b:1\n", AT
     "upstream names servers, sentinels or nodes of a cluster, not two of these: write upstream = cluster:HOST:PORT, "
     "and only its nodes after it\n"},
    {"[weir]\nupstream = cluster:a:1, sentinel:m@b:1\n", AT
     "upstream names servers or sentinels, not both: write upstream = sentinel:NAME@HOST:26379, and only sentinels "
     "after it\n"},
    {"[weir]\nupstream = cluster:a:1, cluster:b:1\n",
     AT "write cluster: only before the first node, and the others as HOST:PORT\n"},
    {"[weir]\nupstream = cluster:\n",
     AT "the address of a node is missing: write upstream = cluster:HOST:PORT\n"},
    {"[weir]\nupstream = cluster:a\n", AT "\"a\" has no port: write a:6379\n"},
    {"[weir]\nupstream = cluster:a:0\n",
     AT "\"0\" is not a port: a port is a number from 1 to 65535\n"},
    {"[weir]\nupstream = cluster:unix:/a\n",
     AT "a node of a cluster cannot have a unix socket: write HOST:PORT\n"},
    {"[weir]\nupstream = cluster:a:1, unix:/a\n",
     AT "a node of a cluster cannot have a unix socket: write HOST:PORT\n"},
    {"[weir]\nupstream = cluster:a:1, tls:b:1\n",
     AT "tls: must precede every address of upstream, or none: tls:b:1 has it\n"},
    {"[weir]\nupstream = cluster:a:1, A:1\n", AT "A:1 is given twice: name each address once\n"},
    {"[weir]\nupstream = cluster:a:1\nlanes = private\n",
     "weir.conf:3: [weir] lanes: a cluster has no single server for a private connection: write lanes = shared\n"},
    {"[weir]\nupstream = a:1\ncross-slot = refuse\n",
     "weir.conf:3: [weir] cross-slot: upstream names no cluster: write upstream = cluster:HOST:PORT, or remove this "
     "line\n"},
    {"[weir]\nupstream = a:1, b:1\ncluster-commands = refuse\n",
     "weir.conf:3: [weir] cluster-commands: upstream names no cluster: write upstream = cluster:HOST:PORT, or remove "
     "this line\n"},
    {"[weir]\ncluster-announce = a:2\n",
     AT_KEY(
         "cluster-announce") "upstream names no cluster: write upstream = cluster:HOST:PORT, or remove this line\n"},
    {"[weir]\nupstream = cluster:a:1\nsentinel-user = a\n",
     "weir.conf:3: [weir] sentinel-user: needs sentinel-password-file\n"
     "weir.conf:3: [weir] sentinel-user: upstream names no sentinels: write upstream = sentinel:NAME@HOST:26379, or "
     "remove this line\n"},
    {"[weir]\ncluster-announce = unix:/a\n",
     AT_KEY(
         "cluster-announce") "clients of a cluster need a host and a port: write cluster-announce = HOST:PORT\n"},
    {"[weir]\ncluster-announce = a:0\n",
     AT_KEY(
         "cluster-announce") "clients cannot connect to port 0: write cluster-announce = HOST:PORT\n"},
    {"[weir]\nupstream = cluster:a:1\ncluster-announce = a:2\ncluster-commands = refuse\n",
     "weir.conf:3: [weir] cluster-announce: has no effect with cluster-commands = refuse: remove this line\n"},
    {"[weir]\ncross-slot = all\n",
     AT_KEY("cross-slot") "\"all\" is neither split nor split-all nor refuse\n"},
    {"[weir]\nupstream = a:1, b:1, A:1\n", AT "A:1 is given twice: name each address once\n"},
    {"[weir]\nupstream = a:1\nupstream = a:1\n",
     "weir.conf:3: [weir] upstream: a:1 is given twice: name each address once\n"},
    {"[weir]\nupstream = sentinel:m@a:1, a:1\n", AT "a:1 is given twice: name each address once\n"},
    {"[weir]\nupstream = a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1\nupstream = q:1\n",
     "weir.conf:3: [weir] upstream: at most 16 addresses: remove q:1\n"},
    {"[weir]\nupstream = tls:a:1, b:1\n",
     AT "tls: must precede every address of upstream, or none: b:1 has none\n"},
    {"[weir]\nupstream = sentinel:m@a:1, tls:b:1\n",
     AT "tls: must precede every address of upstream, or none: tls:b:1 has it\n"},
    {"[weir]\nupstream = a:1,, b:1\n", AT "an address is missing next to a comma\n"},
    {"[weir]\nupstream = ann:s3cret@a:1\n", AT
     "only the name of a master may precede an @: write upstream = sentinel:NAME@HOST:26379, and a login in "
     "upstream-user and upstream-password-file\n"},
    {"[weir]\nupstream = sentinel:m@ann:s3cret@a:1\n", AT
     "only the name of a master may precede an @: write upstream = sentinel:NAME@HOST:26379, and a login in "
     "upstream-user and upstream-password-file\n"},
    {"[weir]\nupstream = sentinel:m@redis://:s3cret@a:1\n", AT
     "a URL is not an address: write HOST:PORT, and a login in upstream-user and upstream-password-file\n"},
    {"[weir]\nupstream = a:1, redis://:s3cret@b:1\n", AT
     "a URL is not an address: write HOST:PORT, and a login in upstream-user and upstream-password-file\n"},
    {"[weir]\nupstream = sentinel:m@a:1 b:1\n",
     AT "separate addresses by commas: write upstream = a:1, b:1\n"},
    {"[weir]\nlisten = 127.0.0.1:7\nupstream = a:1, 127.0.0.1:7\n",
     "weir.conf:3: [weir] upstream: 127.0.0.1:7 is an address that weir itself listens on (127.0.0.1:7): name the "
     "address of Redis\n"},
    {"[weir]\nlisten = 0.0.0.0:7\nupstream = sentinel:m@a:1\nupstream = 127.0.0.2:7\n",
     "weir.conf:4: [weir] upstream: 127.0.0.2:7 is an address that weir itself listens on (0.0.0.0:7): name the "
     "address of Redis\n"},
};

static void test_mistakes(void **state)
{
    (void)state;
    check_mistakes(mistakes, COUNT_OF(mistakes));
}

/* ---- keys that need such an upstream ---- */

#define NO_REPLICAS                                                                                     \
    "upstream names one server without replicas: write upstream = HOST:PORT, HOST:PORT, or upstream = " \
    "sentinel:NAME@HOST:26379, or reads = master\n"
#define NO_SENTINELS                                                                               \
    "upstream names no sentinels: write upstream = sentinel:NAME@HOST:26379, or remove this line\n"

static const struct mistake lacks[] = {
    {"[weir]\nreads = replicas\n", "weir.conf:2: [weir] reads: " NO_REPLICAS},
    {"[weir]\nupstream = a:1\nreads = asked\n", "weir.conf:3: [weir] reads: " NO_REPLICAS},
    {"[weir]\nreads = slaves\n",
     AT_KEY("reads") "\"slaves\" is neither master nor asked nor replicas\n"},
    {"[weir]\nreplica-poll = 1ms\n", AT_KEY("replica-poll") "must be from 10ms to 10s\n"},
    {"[weir]\nreplica-lag-max = 0\n", AT_KEY("replica-lag-max") "must be from 10ms to 1h\n"},
    {"[weir]\nsentinel-password-file = secret\n", AT_KEY("sentinel-password-file") NO_SENTINELS},
    {"[weir]\nupstream = a:1, b:1\nsentinel-password-file = secret\n",
     "weir.conf:3: [weir] sentinel-password-file: " NO_SENTINELS},
    {"[weir]\nupstream = sentinel:m@a:1\nsentinel-user = weir\n",
     "weir.conf:3: [weir] sentinel-user: needs sentinel-password-file\n"},
    {"[weir]\nupstream = sentinel:m@a:1\nsentinel-user = a b\n",
     "weir.conf:3: [weir] sentinel-user: a user is one word of at most 255 bytes\n"},
    {"[weir]\nupstream = sentinel:m@a:1\nsentinel-password-file = none\n",
     "weir.conf:3: [weir] sentinel-password-file: none cannot be opened: No such file or directory\n"},
};

static void write_secret(void)
{
    write_bytes("secret", "hunter2\n", 8);
    assert_int_equal(chmod("secret", 0600), 0);
}

static void test_keys_that_lack_another(void **state)
{
    (void)state;
    write_secret();
    check_mistakes(lacks, COUNT_OF(lacks));
}

static void test_keys_beside_what_they_need(void **state)
{
    (void)state;
    write_secret();
    struct config *config =
        load_text("[weir]\nupstream = sentinel:m@a:1\nsentinel-user = weir\n"
                  "sentinel-password-file = secret\nreads = replicas\nreplica-poll = 100ms\n"
                  "replica-lag-max = 2s\nread-own-writes = no\n");
    assert_string_equal(said.text, "");
    assert_string_equal(config->sentinel_user, "weir");
    assert_string_equal(config->sentinel_password_file, "secret");
    assert_int_equal(config->reads.reads, READS_REPLICAS);
    assert_int_equal(config->reads.poll_ns, 100 * NS_PER_MS);
    assert_int_equal(config->reads.lag_max_ns, 2 * NS_PER_S);
    assert_false(config->reads.own_writes);
    config_free(config);
    config = load_text("[weir]\nupstream = a:1\nreads = master\nread-own-writes = no\n");
    assert_string_equal(said.text, "");
    assert_int_equal(config->reads.reads, READS_MASTER);
    config_free(config);
    config = load_text("");
    assert_int_equal(config->reads.reads, READS_MASTER);
    assert_int_equal(config->reads.poll_ns, 250 * NS_PER_MS);
    assert_int_equal(config->reads.lag_max_ns, NS_PER_S);
    assert_true(config->reads.own_writes);
    config_free(config);
}

/* ---- weir -t ---- */

static const struct {
    const char *text;
    bool is_warned;
} anywhere[] = {
    {"[weir]\nupstream = a:1\n", false},
    {"[weir]\nupstream = a:1, b:1\n", true},
    {"[weir]\nupstream = sentinel:m@10.0.0.1:1\n", true},
    {"[weir]\nupstream = sentinel:m@tls:a:1\n", false},
    {"[weir]\nupstream = sentinel:m@tls:a:1\nupstream-tls-verify = no\n", true},
    {"[weir]\nupstream = sentinel:m@a:1\nupstream-allow = 10.0.0.0/8\n", false},
    {"[weir]\nupstream = tls:a:1, tls:b:1\n", false},
};

static void test_passwords_that_may_go_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(anywhere); i++) {
        said = (struct said){0};
        write_bytes("weir.conf", anywhere[i].text, strlen(anywhere[i].text));
        struct config_file file = {.path = "weir.conf", .report = on_report, .arg = &said};
        struct config *config = config_read(&file, table);
        assert_non_null(config);
        config_lint(config, &file);
        bool is_warned =
            strstr(said.text,
                   "warning: weir.conf:2: [weir] upstream: weir sends passwords to any address") !=
            NULL;
        if (is_warned != anywhere[i].is_warned)
            fail_msg("%s: %s", anywhere[i].text, said.text);
        config_free(config);
        config_file_fini(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_keys_that_lack_another),
        cmocka_unit_test(test_keys_beside_what_they_need),
        cmocka_unit_test(test_passwords_that_may_go_anywhere),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
