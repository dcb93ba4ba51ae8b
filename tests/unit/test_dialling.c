/* Tests of the addresses that weir dials: upstream-map, upstream-allow and weir's own listeners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ifaddrs.h>

#include "config_kit.h"
#include "run/config/dialling.h"

/* ---- upstream-map ---- */

static const struct mistake mistakes[] = {
    {"[weir]\nupstream-map = a:1\n",
     "weir.conf:2: [weir] upstream-map: \"a:1\" lacks the address to connect to: write ANNOUNCED:PORT=DIALLED:PORT\n"},
    {"[weir]\nupstream-map = a:1=b:1=c:1\n",
     "weir.conf:2: [weir] upstream-map: \"a:1=b:1=c:1\" lacks the address to connect to: write "
     "ANNOUNCED:PORT=DIALLED:PORT\n"},
    {"[weir]\nupstream-map = a:1=b:1,\n",
     "weir.conf:2: [weir] upstream-map: \"\" lacks the address to connect to: write ANNOUNCED:PORT=DIALLED:PORT\n"},
    {"[weir]\nupstream-map = a=b:1\n",
     "weir.conf:2: [weir] upstream-map: \"a\" has no port: write a:6379\n"},
    {"[weir]\nupstream-map = a:1=b:0\n",
     "weir.conf:2: [weir] upstream-map: \"0\" is not a port: a port is a number from 1 to 65535\n"},
    {"[weir]\nupstream-map = a:1=tls:b:1\n",
     "weir.conf:2: [weir] upstream-map: \"tls:b:1\": write HOST:PORT on both sides; tls: belongs only in upstream\n"},
    {"[weir]\nupstream-map = a:1=unix:/b\n",
     "weir.conf:2: [weir] upstream-map: \"unix:/b\": write HOST:PORT on both sides; tls: belongs only in upstream\n"},
    {"[weir]\nupstream-map = a:1=b:1\nupstream-map = A:1=c:1\n",
     "weir.conf:3: [weir] upstream-map: A:1=c:1 is mapped twice: name each address once\n"},
    {"[weir]\nupstream-map = 10.0.0.1:1=b:1, [::ffff:10.0.0.1]:1=c:1\n",
     "weir.conf:2: [weir] upstream-map: [::ffff:10.0.0.1]:1=c:1 is mapped twice: name each address once\n"},
    {"[weir]\nupstream-map = a:1=a:1\n",
     "weir.conf:2: [weir] upstream-map: a:1=a:1 leads back to itself: remove it\n"},
    {"[weir]\nupstream-map = a:1=b:1, b:1=a:1\n",
     "weir.conf:2: [weir] upstream-map: b:1=a:1 leads back to itself: remove it\n"},
    {"[weir]\nupstream-map = a:1=b:1, c:1=a:1\nupstream-map = b:1=c:1\n",
     "weir.conf:3: [weir] upstream-map: b:1=c:1 leads back to itself: remove it\n"},
    {"[weir]\nlisten = 127.0.0.1:7\nupstream-map = a:1=127.0.0.1:7\n",
     "weir.conf:3: [weir] upstream-map: 127.0.0.1:7 is an address that weir itself listens on (127.0.0.1:7): name the "
     "address of "
     "Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:7\nupstream = a:1\nupstream-map = a:1=127.0.0.1:8, b:1=[::ffff:127.0.0.1]:7\n",
     "weir.conf:4: [weir] upstream-map: [::ffff:127.0.0.1]:7 is an address that weir itself listens on (127.0.0.1:7): "
     "name the "
     "address of Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:7\nupstream = [::ffff:127.0.0.1]:7\n",
     "weir.conf:3: [weir] upstream: [::ffff:127.0.0.1]:7 is an address that weir itself listens on (127.0.0.1:7): "
     "name the address "
     "of Redis\n"},
    {"[weir]\nlisten = 0.0.0.0:7\nupstream = a:1, [::ffff:127.9.9.9]:7\n",
     "weir.conf:3: [weir] upstream: [::ffff:127.9.9.9]:7 is an address that weir itself listens on (0.0.0.0:7): name "
     "the address of "
     "Redis\n"},
    {"[weir]\nupstream-allow = 10.0.0.0/8\nupstream = 10.0.0.1:1, 11.0.0.1:1\n",
     "weir.conf:3: [weir] upstream: weir may not connect to 11.0.0.1:1: upstream-allow does not contain it: write "
     "upstream-allow = 11.0.0.1\n"},
    {"[weir]\nupstream-allow = 10.0.0.0/8\nupstream = sentinel:m@a:1\nupstream-map = b:1=11.0.0.1:2\n",
     "weir.conf:4: [weir] upstream-map: weir may not connect to 11.0.0.1:2: upstream-allow does not contain it: write "
     "upstream-allow = 11.0.0.1\n"},
    {"[weir]\nupstream-allow = 10.0.0.0/8\n",
     "weir.conf:2: [weir] upstream-allow: weir may not connect to 127.0.0.1:6379: upstream-allow does not contain it: "
     "write upstream-allow = 127.0.0.1\n"},
};

static void test_mistakes(void **state)
{
    (void)state;
    check_mistakes(mistakes, COUNT_OF(mistakes));
}

/* The 65th row is refused. */
static void test_the_most_rows(void **state)
{
    char text[4096] = "[weir]\n";
    (void)state;
    for (int i = 0; i < ADDRESS_MAP_MOST; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "upstream-map = a:%d=b:%d\n",
                 i + 1, i + 1);
    struct config *config = load_text(text);
    assert_string_equal(said.text, "");
    assert_int_equal(config->upstream_map.n, ADDRESS_MAP_MOST);
    config_free(config);
    snprintf(text + strlen(text), sizeof text - strlen(text), "upstream-map = a:99=b:99\n");
    assert_null(load_text(text));
    assert_string_equal(
        said.text, "weir.conf:66: [weir] upstream-map: at most 64 addresses: remove a:99=b:99\n");
}

static struct address parsed(const char *text)
{
    struct address address;
    char why[CONFIG_WHY_ROOM];
    assert_true(address_parse(&address, slice_str(text), true, (struct why){why, sizeof why}));
    return address;
}

static void test_where_the_map_leads(void **state)
{
    static const char *const pairs[][2] = {
        {"172.17.0.2:7000", "127.0.0.1:7001"},
        {"[::ffff:172.17.0.2]:7000", "127.0.0.1:7001"},
        {"172.17.0.2:7001", "172.17.0.2:7001"},
        {"REDIS-1:6379", "a:1"},
        {"a:1", "b:2"},
        {"b:2", "b:2"},
        {"[fd00:0::1]:9", "[fd00::2]:9"},
        {"unix:/run/redis.sock", "unix:/run/redis.sock"},
    };
    (void)state;
    struct config *config =
        load_text("[weir]\nupstream-map = 172.17.0.2:7000=127.0.0.1:7001, redis-1:6379=a:1\n"
                  "upstream-map = a:1=b:2, [fd00::1]:9 = [fd00::2]:9\n");
    assert_string_equal(said.text, "");
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct address from = parsed(pairs[i][0]), to = parsed(pairs[i][1]);
        assert_true(address_eq(address_map_find(&config->upstream_map, &from), &to));
        address_fini(&from);
        address_fini(&to);
    }
    config_free(config);
}

/* ---- weir's own listeners, and networks ---- */

static struct endpoint endpoint_of(const char *text, uint16_t port)
{
    struct address address = parsed(text);
    struct endpoint endpoint;
    address.port = port;
    assert_true(address_is_literal(&address, &endpoint));
    address_fini(&address);
    return endpoint;
}

static const struct listener_case {
    const char *to, *own;
    bool is_dual, is_reached;
} reaches[] = {
    {"127.0.0.1:0", "127.0.0.1:0", false, true},
    {"[::ffff:127.0.0.1]:0", "127.0.0.1:0", false, true},
    {"127.0.0.2:0", "127.0.0.1:0", false, false},
    {"0.0.0.0:0", "127.0.0.1:0", false, true},
    {"[::]:0", "[::1]:0", false, true},
    {"[::]:0", "127.0.0.1:0", false, false},
    {"0.0.0.0:0", "10.255.255.9:0", false, false},
    {"127.0.0.1:0", "0.0.0.0:0", false, true},
    {"127.0.0.2:0", "0.0.0.0:0", false, true},
    {"0.0.0.0:0", "0.0.0.0:0", false, true},
    {"[::ffff:127.0.0.1]:0", "0.0.0.0:0", false, true},
    {"192.0.2.77:0", "0.0.0.0:0", false, false},
    {"[::1]:0", "0.0.0.0:0", false, false},
    {"[::1]:0", "[::]:0", false, true},
    {"127.0.0.1:0", "[::]:0", false, false},
    {"127.0.0.1:0", "[::]:0", true, true},
    {"[2001:db8::77]:0", "[::]:0", true, false},
    {"10.1.1.1:0", "10.1.1.1:0", false, true},
};

static void test_what_reaches_a_listener(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(reaches); i++) {
        const struct listener_case *r = &reaches[i];
        struct endpoint to = endpoint_of(r->to, 7), own = endpoint_of(r->own, 7),
                        other = endpoint_of(r->to, 8);
        if (dialling_reaches(&to, &own, r->is_dual) != r->is_reached)
            fail_msg("%s, %s", r->to, r->own);
        assert_false(dialling_reaches(&other, &own, r->is_dual));
    }
}

/* Every address of this machine, whatever its interfaces are. */
static void test_own_interfaces(void **state)
{
    struct ifaddrs *all = NULL;
    (void)state;
    assert_int_equal(getifaddrs(&all), 0);
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        struct ip ip = at->ifa_addr != NULL ? ip_of(at->ifa_addr) : (struct ip){.family = 0};
        char text[IP_TEXT_MAX], address[IP_TEXT_MAX + 8];
        if (ip.family == 0)
            continue;
        ip_print(&ip, text);
        snprintf(address, sizeof address, ip.family == 4 ? "%s:0" : "[%s]:0", text);
        struct endpoint to = endpoint_of(address, 7), v4 = endpoint_of("0.0.0.0:0", 7),
                        v6 = endpoint_of("[::]:0", 7);
        assert_true(dialling_reaches(&to, ip.family == 4 ? &v4 : &v6, false));
        assert_true(dialling_reaches(&to, &v6, true));
    }
    freeifaddrs(all);
}

static int listen_at(const char *text, uint16_t *port)
{
    struct endpoint at = endpoint_of(text, 0);
    int fd = socket(at.address.ss_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at.address, at.length), 0);
    at.length = sizeof at.address;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at.address, &at.length), 0);
    *port = endpoint_port(&at);
    return fd;
}

/* The system may have chosen the port. */
static void test_refusals(void **state)
{
    uint16_t port;
    struct address_map map = {0};
    struct networks allow = {.count = 0};
    char why[CONFIG_WHY_ROOM];
    const char *refusal = NULL;
    (void)state;
    struct dialling *dialling = dialling_new(&map, &allow);
    int fd = listen_at("0.0.0.0:0", &port);
    dialling_add_own(dialling, fd);
    struct endpoint own = endpoint_of("127.0.0.1:0", port),
                    other = endpoint_of("127.0.0.1:0", (uint16_t)(port ^ 1));
    struct endpoint far = endpoint_of("10.1.2.3:0", port), none = endpoint_of("10.1.2.3:0", 0);
    struct endpoint path = endpoint_of("unix:/run/redis.sock", 0);
    assert_string_equal(dialling_refusal(dialling, &own), "weir itself listens at its address");
    assert_string_equal(dialling_refusal(dialling, &none), "its port is 0");
    assert_null(dialling_refusal(dialling, &other));
    assert_null(dialling_refusal(dialling, &far));
    assert_true(networks_add(&allow, SLICE("10.1.0.0/16"), why, sizeof why));
    assert_string_equal(dialling_refusal(dialling, &other),
                        "upstream-allow does not contain its address");
    assert_null(dialling_refusal(dialling, &far));
    assert_null(dialling_refusal(dialling, &path));
    struct address nil = parsed("127.0.0.1:0");
    assert_null(dialling_target(dialling, &nil, &refusal));
    assert_string_equal(refusal, "its port is 0");
    nil.port = 1;
    nil.host[0] = '\0';
    assert_null(dialling_target(dialling, &nil, &refusal));
    assert_string_equal(refusal, "it has no host");
    address_fini(&nil);
    dialling_free(dialling);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_the_most_rows),
        cmocka_unit_test(test_where_the_map_leads),
        cmocka_unit_test(test_what_reaches_a_listener),
        cmocka_unit_test(test_own_interfaces),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
