/*
 * Tests of configuration files, good and bad, with every message. Files are in a temporary working
 * directory, so that messages name "weir.conf".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config_kit.h"
#include "limit/figures/slowlog.h"
#include "run/config/config_build.h"
#include "run/config/config_edit.h"
#include "run/config/config_keys.h"

/* ---- a table of mistakes ---- */

#define NO_SECTION                                                                                 \
    "this line is in no section: write [weir] above it, or [policy NAME] for a limit\n"

static const struct mistake line_mistakes[] = {
    {"[weir]\nworkers\n", "weir.conf:2: [weir]: expected: key = value\n"},
    {"[weir]\n= 5\n", "weir.conf:2: [weir]: expected: key = value\n"},
    {"workers = 1\n", "weir.conf:1: workers: " NO_SECTION},
    {"[weir\nworkers = 1\n",
     "weir.conf:1: the ] of the section is missing\nweir.conf:2: workers: " NO_SECTION},
    {"[weir] workers = 1\n", "weir.conf:1: only a comment may follow the ] of a section\n"},
    {"[weir]\nworkers = 1\x1b[2J\n",
     "weir.conf:2: [weir]: the line holds a control character (0x1b)\n"},
    {"[]\n", "weir.conf:1: []: the section has no name\n"},
    {"[wier]\n", "weir.conf:1: [wier]: unknown section (did you mean weir?)\n"},
    {"[redis]\nport = 1\n",
     "weir.conf:1: [redis]: unknown section: write [weir], with upstream = HOST:PORT in it\n"},
    {"[weir main]\n", "weir.conf:1: [weir main]: this section takes no name\n"},
    {"[policy]\n", "weir.conf:1: [policy]: a name is missing after the word\n"},
    {"[cost keys]\n", "weir.conf:1: [cost keys]: this section takes no name\n"},
    {"[admins]\nsocket = /x\n", "weir.conf:1: [admins]: unknown section (did you mean admin?)\n"},
    {"[limit signup]\n",
     "weir.conf:1: [limit signup]: the limit is empty: give it a rate, like sliding = 5/60s\n"},
};

static const struct mistake key_mistakes[] = {
    {"[weir]\nworkrs = 1\n", "weir.conf:2: [weir] workrs: unknown key (did you mean workers?)\n"},
    {"[weir]\nzzz = 1\n", "weir.conf:2: [weir] zzz: unknown key\n"},
    {"[weir]\nworkers =\n", "weir.conf:2: [weir] workers: a value is missing\n"},
    {"[weir]\nworkers = ; two\n", "weir.conf:2: [weir] workers: a value is missing\n"},
    {"[weir]\nworkers = 1\n\nWorkers = 2\n",
     "weir.conf:4: [weir] Workers: given twice: the first is in line 2\n"},
    {"[weir]\nmode = shade\n",
     "weir.conf:2: [weir] mode: \"shade\" is neither enforce nor shadow\n"},
    {"[weir]\nsocket = /x\n",
     "weir.conf:2: [weir] socket: unknown key: clients: listen = unix:/x; operators: [admin], and socket = /x below "
     "it\n"},
    {"[admin]\nworkers = 1\n", "weir.conf:2: [admin] workers: unknown key\n"},
    {"[policy default]\nweight = 0\n",
     "weir.conf:2: [policy default] weight: \"0\" is not a number from 1 to 10000\n"},
    {"[policy default]\npriority = high\n",
     "weir.conf:2: [policy default] priority: \"high\" is neither normal nor low\n"},
    {"[admin]\nsoket = /x\n", "weir.conf:2: [admin] soket: unknown key (did you mean socket?)\n"},
    {"[admin]\nlisten = 9380\n",
     "weir.conf:2: [admin] listen: \"9380\" is a port without a host: write 127.0.0.1:9380\n"},
    {"[admin]\nlisten = unix:/x\n", "weir.conf:2: [admin] listen: HTTP needs host:port\n"},
    {"[admin]\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:2\n",
     "weir.conf:3: [admin] listen: given twice: the first is in line 2\n"},
    {"[admin]\nhost = weir, ops:9380\n",
     "weir.conf:2: [admin] host: \"ops:9380\" is not a host name: write it as in the address bar, without a port\n"},
    {"[admin]\nhost = *\n",
     "weir.conf:2: [admin] host: \"*\" is not a host name: write it as in the address bar, without a port\n"},
    {"[admin]\nsocket = x\n",
     "weir.conf:2: [admin] socket: \"x\" is not a path: the path of a unix socket must start with /\n"},
    {"[admin]\nsocket = /x\n[admin]\nsocket = /y\n",
     "weir.conf:4: [admin] socket: given twice: the first is in line 2\n"},
    {"[weir]\ncl-throttle = cell\n",
     "weir.conf:2: [weir] cl-throttle: \"cell\" is neither prefix nor raw nor off\n"},
    {"[limit n]\nsliding = 5/s, 10001/d\n",
     "weir.conf:2: [limit n] sliding: an exact sliding window counts at most 10000 units: use APPROX for more\n"},
    {"[weir]\nlimit-prefix = limit:%u\n",
     "weir.conf:2: [weir] limit-prefix: a separator must follow %u, like limit:%u:\n"},
    {"[limit n]\nwhen-dwn = allow\nfixed = 1/s\n",
     "weir.conf:2: [limit n] when-dwn: unknown key (did you mean when-down?)\n"},
    {"[limit n:m]\nfixed = 1/s\n[limit N]\nfixed = 1/s\n[limit n:]\nfixed = 1/s\n",
     "weir.conf:1: [limit n:m]: the limit would share keys with [limit n]: keys there begin with \"n:\": rename it\n"
     "weir.conf:5: [limit n:]: the limit would share keys with [limit n]: keys there begin with \"n:\": rename it\n"},
    {"[limit n]\nover = shade\nfixed = 1/s\n",
     "weir.conf:2: [limit n] over: \"shade\" is neither refuse nor shadow\n"},
    {"[limit n]\nwhen-down = never\nfixed = 1/s\n",
     "weir.conf:2: [limit n] when-down: \"never\" is neither error nor allow nor deny nor local\n"},
    {"[limit n]\nwhen-down = allow\nfixed = 1/s\nwhen-down = deny\n",
     "weir.conf:4: [limit n] when-down: given twice\n"},
    {"[limit n]\ntz = UTC\nfixed = 1/month\ntz = UTC\n",
     "weir.conf:4: [limit n] tz: given twice\n"},
    {"[limit n]\ntz = ../UTC\nfixed = 1/month\n",
     "weir.conf:2: [limit n] tz: unknown time zone \"../UTC\": write a name of the time zone database, like "
     "Europe/Berlin\n"},
    {"[limit n]\ntz = UTC\nfixed = 1/30d\n",
     "weir.conf:1: [limit n]: tz needs a rate by the calendar, like fixed = 1000/month\n"},
    {"[limit n]\nfunnel = 1/month\n",
     "weir.conf:2: [limit n] funnel: day, week and month are for FIXED, not funnel\n"},
    {"[policy default]\nread = 1/month\n",
     "weir.conf:2: [policy default] read: \"1/month\": day, week and month are for FIXED; d is any 24 hours\n"},
    {"[limit n]\nfixed = 1/s\npenalty = 1h..1m\n",
     "weir.conf:3: [limit n] penalty: the longest penalty is shorter than the first: write 1m..1h\n"},
    {"[limit n]\nfixed = 1/s\npenalty = 1m..1h\npenalty = 1h\n",
     "weir.conf:4: [limit n] penalty: given twice\n"},
    {"[limit n]\nfixed = 1/s\npenalti = 1m\n",
     "weir.conf:3: [limit n] penalti: unknown key (did you mean penalty?)\n"},
    {"[limit n]\nwhen-down = local\n",
     "weir.conf:1: [limit n]: the limit has no rate: give it one, like sliding = 5/60s\n"},
    {"[weir]\nlimit-when-down = local\n",
     "weir.conf:2: [weir] limit-when-down: local is only for named limits: write when-down = local in a [limit "
     "NAME]\n"},
    {"[weir]\nworkers = 0\n", "weir.conf:2: [weir] workers: must be from 1 to 256, or cores\n"},
    {"[weir]\nworkers = 257\n", "weir.conf:2: [weir] workers: must be from 1 to 256, or cores\n"},
    {"[weir]\nmax-clients = 1000001\n",
     "weir.conf:2: [weir] max-clients: must be from 1 to 1000000\n"},
    {"[weir]\nmax-subjects = 0\n",
     "weir.conf:2: [weir] max-subjects: must be from 1 to 100000000\n"},
    {"[weir]\noutput-limit = 1kb\n",
     "weir.conf:2: [weir] output-limit: must be from 64kb to 64gb\n"},
    {"[weir]\noutput-limit = 64m\n",
     "weir.conf:2: [weir] output-limit: \"64m\" is not a size: write a number of bytes, or one with kb, mb or gb "
     "(64mb)\n"},
    {"[weir]\noutput-limit = 9000000000000000000gb\n",
     "weir.conf:2: [weir] output-limit: \"9000000000000000000gb\" is not a size: write a number of bytes, or one with "
     "kb, "
     "mb or gb (64mb)\n"},
    {"[weir]\nupstream-dial-rate = fast\n",
     "weir.conf:2: [weir] upstream-dial-rate: \"fast\" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s\n"},
    {"[weir]\nupstream-check = 5ms\n",
     "weir.conf:2: [weir] upstream-check: must be from 10ms to 1h, or 0\n"},
    {"[weir]\nworkers = 1000\n", "weir.conf:2: [weir] workers: must be from 1 to 256, or cores\n"},
    {"[weir]\nconnect-timeout = 0\n",
     "weir.conf:2: [weir] connect-timeout: must be from 1ms to 1h\n"},
    {"[weir]\nlanes = mixed\n",
     "weir.conf:2: [weir] lanes: \"mixed\" is neither shared nor private\n"},
    {"[weir]\nerror-prefix = throttled\n",
     "weir.conf:2: [weir] error-prefix: \"throttled\" is not 1 to 32 capital letters\n"},
    {"[weir]\nerror-prefix = TRYAGAIN\n",
     "weir.conf:2: [weir] error-prefix: client libraries act on TRYAGAIN (retry, reconnect, log in again): choose "
     "another word\n"},
    {"[weir]\nupstream-user = a b\n",
     "weir.conf:2: [weir] upstream-user: a user is one word of at most 255 bytes\n"
     "weir.conf:2: [weir] upstream-user: needs upstream-password-file\n"},
    {"[weir]\nclients-as = weir\n",
     "weir.conf:2: [weir] clients-as: \"weir\" is neither client nor upstream\n"},
    {"[weir]\nclients-as = upstream\n",
     "weir.conf:2: [weir] clients-as: upstream needs upstream-password-file\n"},
    {"[weir]\nidentity = user, ipp\n",
     "weir.conf:2: [weir] identity: unknown source \"ipp\" (did you mean ip?)\n"},
};

static const struct mistake address_mistakes[] = {
    {"[weir]\nlisten = 6380\n",
     "weir.conf:2: [weir] listen: \"6380\" is a port without a host: write 127.0.0.1:6380, or 0.0.0.0 instead for all "
     "addresses of this machine\n"},
    {"[weir]\nlisten = 127.0.0.1:6380,\n",
     "weir.conf:2: [weir] listen: an address is missing next to a comma\n"},
    {"[weir]\nlisten = [::1]\n",
     "weir.conf:2: [weir] listen: \"[::1]\" has no port: write [::1]:6380\n"},
    {"[weir]\nlisten = 127.0.0.1:1 proxy\n",
     "weir.conf:2: [weir] listen: proxy needs proxy-protocol-from: set it to the addresses of your proxies\n"},
    {"[weir]\nlisten = 127.0.0.1:1 proxy proxy\nproxy-protocol-from = unix\n",
     "weir.conf:2: [weir] listen: \"proxy\" is unexpected: separate addresses by commas; only proxy may follow an "
     "address\n"},
    {"[weir]\nlisten = proxy\n",
     "weir.conf:2: [weir] listen: \"proxy\" has no port: write proxy:6380\n"},
    {"[weir]\nlisten = 127.0.0.1:1, 127.0.0.1:1 proxy\nproxy-protocol-from = unix\n",
     "weir.conf:2: [weir] listen: 127.0.0.1:1 is given twice\n"},
    {"[weir]\nproxy-protocol-from = localhost\n",
     "weir.conf:2: [weir] proxy-protocol-from: \"localhost\" is not an address: write 192.0.2.7, 10.1.0.0/16, "
     "2001:db8::/32 or unix\n"},
    {"[weir]\nproxy-protocol-from = 10.0.0.0/8, 10.1.2.3/16\n",
     "weir.conf:2: [weir] proxy-protocol-from: \"10.1.2.3/16\" has address bits beyond its prefix length: the network "
     "is "
     "10.1.0.0/16\n"},
    {"[weir]\nproxy-protocol-from = ::/129\n",
     "weir.conf:2: [weir] proxy-protocol-from: \"::/129\": the prefix length must be 0 to 128\n"},
    {"[weir]\nlisten = ::1:6380\n",
     "weir.conf:2: [weir] listen: write an IPv6 address in brackets: [::1]:6379\n"},
    {"[weir]\nlisten = :6380\n",
     "weir.conf:2: [weir] listen: a host is missing before the port: write 127.0.0.1:6380, or 0.0.0.0 instead for all "
     "addresses of this machine\n"},
    {"[weir]\nlisten = *:6380\n",
     "weir.conf:2: [weir] listen: * is not a host: write 0.0.0.0:6380 for all IPv4 addresses of this machine, "
     "[::]:6380 "
     "for those of IPv6, or both\n"},
    {"[weir]\nlisten = /tmp/x.sock\n",
     "weir.conf:2: [weir] listen: \"/tmp/x.sock\" is a path: write unix:/tmp/x.sock\n"},
    {"[weir]\nlisten = 127.0.0.1:1 127.0.0.1:2\n",
     "weir.conf:2: [weir] listen: \"127.0.0.1:2\" is unexpected: separate addresses by commas; only proxy may follow "
     "an address\n"},
    {"[weir]\nupstream = redis\n",
     "weir.conf:2: [weir] upstream: \"redis\" has no port: write redis:6379\n"},
    {"[weir]\nupstream = :6379\n",
     "weir.conf:2: [weir] upstream: a host is missing before the port: write 127.0.0.1:6379\n"},
    {"[weir]\nupstream = a:1 b:2\n",
     "weir.conf:2: [weir] upstream: separate addresses by commas: write upstream = a:1, b:2\n"},
    {"[weir]\nupstream = a:1 check\n",
     "weir.conf:2: [weir] upstream: only a comma and another address may follow an address: write upstream = a:1\n"},
    {"[weir]\nupstream = a:1;b:2\n",
     "weir.conf:2: [weir] upstream: a comment after a value begins with a blank and a semicolon: write upstream = "
     "a:1\n"},
    {"[weir]\nupstream = a:1,\n",
     "weir.conf:2: [weir] upstream: an address is missing next to a comma\n"},
    {"[weir]\nupstream = unix:/a,b\n",
     "weir.conf:2: [weir] upstream: the path of a unix socket has no commas, which separate addresses\n"},
    {"[weir]\nupstream = unix:/a b\n",
     "weir.conf:2: [weir] upstream: the path of a unix socket cannot contain "
     "blanks\n"},
    {"[weir]\nupstream = a:1 password=hunter2\n",
     "weir.conf:2: [weir] upstream: password cannot follow the address: write the password into a file: "
     "upstream-password-file = PATH\n"},
    {"[weir]\nupstream = unix:/x db 3\n",
     "weir.conf:2: [weir] upstream: db cannot follow the address: clients choose their database with SELECT\n"},
    {"[weir]\nupstream = sentinel://u:p@a:1/m\n",
     "weir.conf:2: [weir] upstream: sentinel://... is a URL: write sentinel:NAME@HOST:26379, and more sentinels after "
     "a comma\n"},
    {"[weir]\nupstream = redis://:p@a:1,redis://:p@b:2\n",
     "weir.conf:2: [weir] upstream: redis://... is a URL: write b:2, and its user and password in upstream-user and "
     "upstream-password-file\n"},
    {"[weir]\nlisten = ssl:0.0.0.0:1\n",
     "weir.conf:2: [weir] listen: ssl:... is a URL: write tls:0.0.0.0:1\n"},
    {"[weir]\nlisten = a b:6380\n",
     "weir.conf:2: [weir] listen: \"b:6380\" is unexpected: separate addresses by commas; only proxy may follow an "
     "address\n"},
    {"[weir]\nlisten = redis://x:1\n",
     "weir.conf:2: [weir] listen: redis://... is a URL: write x:1\n"},
    {"[weir]\nupstream = RediSS://u:p@w@[::1]/3\n",
     "weir.conf:2: [weir] upstream: RediSS://... is a URL: write tls:[::1]:6379, and its user and password in "
     "upstream-user and upstream-password-file\n"},
    {"[weir]\nupstream = redis://\n",
     "weir.conf:2: [weir] upstream: redis://... is a URL: write host:6379\n"},
    {"[weir]\nlisten = 127.0.0.1:1 # all\n",
     "weir.conf:2: [weir]: a comment after a value begins with ; (# only begins a comment line)\n"},
    {"[weir]\nlisten = localhost:65536\n",
     "weir.conf:2: [weir] listen: \"65536\" is not a port: a port is a number from 0 to 65535\n"},
    {"[weir]\nlisten = a:1, b:1\nlisten = a:1\n",
     "weir.conf:3: [weir] listen: a:1 is given twice\n"},
    {"[weir]\nlisten = unix:weir.sock\n",
     "weir.conf:2: [weir] listen: \"unix:weir.sock\": the path of a unix socket must start with /\n"},
    {"[weir]\nupstream = localhost:0\n",
     "weir.conf:2: [weir] upstream: \"0\" is not a port: a port is a number from 1 to 65535\n"},
};

static const struct mistake class_mistakes[] = {
    {"[class heavy]\n", "weir.conf:1: [class heavy]: the class is empty: give it commands\n"},
    {"[class heavy]\ncommand = keys\n",
     "weir.conf:2: [class heavy] command: unknown key (did you mean commands?)\n"},
    {"[class a]\ncommands = b\n[class b]\ncommands = keys, -a\n[class c]\ncommands = a\n",
     "weir.conf:2: [class a] commands: the class b contains itself through other classes\n"},
    {"[class a]\ncommands = b\n[class b]\ncommands = c\n[class c]\ncommands = b, a\n",
     "weir.conf:2: [class a] commands: the class b contains itself through other classes\n"
     "weir.conf:4: [class b] commands: the class c contains itself through other classes\n"},
};

static const struct mistake policy_mistakes[] = {
    {"[policy free]\nread = 5/s\n",
     "weir.conf:1: [policy free]: the policy binds no client: give it a match (only the policy default has none)\n"},
    {"[policy default]\nmatch = ip:10.0.0.0/8\n",
     "weir.conf:2: [policy default] match: the policy default binds all clients that no other policy binds: leave "
     "match out\n"},
    {"[policy default]\nadmin = true\n",
     "weir.conf:2: [policy default] admin: \"true\" is neither yes nor no\n"},
    {"[policy default]\nread = 1/s, deny\n",
     "weir.conf:2: [policy default] read: deny refuses everything: remove the other limits\n"},
    {"[policy default]\ninflight = 64/s\n",
     "weir.conf:2: [policy default] inflight: \"64/s\": inflight counts what is open at one moment: write it without "
     "a period\n"},
    {"[policy default]\nconnections = 5 over delay 1s\n",
     "weir.conf:2: [policy default] connections: connections cannot be limited with over delay\n"},
    {"[policy default]\nauth-failures = 5/m over refuse\n",
     "weir.conf:2: [policy default] auth-failures: auth-failures cannot be limited with over refuse\n"},
    {"[policy default]\ncmd.ping = 5/s\n",
     "weir.conf:2: [policy default] cmd.ping: cmd.ping is part of class control, which is never refused: write over "
     "delay or over close\n"},
    {"[policy default]\nread =\n", "weir.conf:2: [policy default] read: a value is missing\n"},
};

static const struct mistake cost_mistakes[] = {
    {"[cost]\nkeys = 0\n", "weir.conf:2: [cost] keys: a cost is from 1 to 4294967295\n"},
    {"[cost]\nkeys =\n", "weir.conf:2: [cost] keys: a cost is missing: write 100, or 1 per key\n"},
    {"[cost]\nmget = 1 per kee\n",
     "weir.conf:2: [cost] mget: \"per kee\" is not a cost: write a number, or a number and \"per key\" or \"per "
     "cost\"\n"},
    {"[cost]\nkeyss = 1\n", "weir.conf:2: [cost] keyss: unknown class keyss\n"},
};

/* Keys of other programs, with a hint of weir's own key. */
static const struct mistake hint_mistakes[] = {
    {"[weir]\nupstream-password = hunter2\n",
     "weir.conf:2: [weir] upstream-password: unknown key: a password belongs in a file of its own: write "
     "upstream-password-file = PATH\n"},
    {"[weir]\nSentinel = h:1\n",
     "weir.conf:2: [weir] Sentinel: unknown key: write upstream = sentinel:NAME@HOST:26379, and more sentinels after "
     "a comma\n"},
    {"[weir]\ntimeout = 300\n",
     "weir.conf:2: [weir] timeout: unknown key: write idle-timeout = TIME for idle clients, or "
     "upstream-timeout = TIME for answers of Redis\n"},
    {"[weir]\nrequirepass = hunter2\n",
     "weir.conf:2: [weir] requirepass: unknown key: clients log in with the passwords of Redis, so requirepass stays "
     "in redis.conf; for weir's own login write upstream-password-file = PATH\n"},
    {"[weir]\nport = 6390\n",
     "weir.conf:2: [weir] port: unknown key: write listen = 127.0.0.1:6390, or 0.0.0.0:6390 for all addresses of this "
     "machine\n"},
    {"[weir]\nserver = redis://:hunter2@h:1\n",
     "weir.conf:2: [weir] server: unknown key: write upstream = HOST:PORT\n"},
    {"[weir]\nread = 5/s\ninflight = 3\n",
     "weir.conf:2: [weir] read: unknown key: limits belong in a policy: write [policy default], and read = 5/s below "
     "it\n"
     "weir.conf:3: [weir] inflight: unknown key: limits belong in a policy: write [policy default], and inflight = 3 "
     "below it\n"},
    {"[admin]\nport = 9380\n",
     "weir.conf:2: [admin] port: unknown key: write listen = 127.0.0.1:9380\n"},
    {"[policy default]\ncommands = 100/s\n",
     "weir.conf:2: [policy default] commands: unknown key: write all = 100/s, which limits all commands together "
     "(commands is a key of [class NAME])\n"},
    {"[policy default]\nread = 5/s\nburst = 9\n",
     "weir.conf:3: [policy default] burst: unknown key: the clause goes after a rate: write all = 100/s burst 9\n"},
    {"[redis]\nhost = h\n",
     "weir.conf:1: [redis]: unknown section: write [weir], with upstream = HOST:PORT in it\n"},
    {"[weir]\nupstream = \"127.0.0.1:6379\"\nlisten = 'a:1', 'b:2'\n",
     "weir.conf:2: [weir] upstream: values take no quotes: write upstream = 127.0.0.1:6379\n"
     "weir.conf:3: [weir] listen: values take no quotes: remove them\n"},
    {"[policy default]\nread = \"5/s\"\n",
     "weir.conf:2: [policy default] read: values take no quotes: write read = 5/s\n"},
    {"[policy a]\nmatch = user:x\nadmin = yes\nadmin = yes\nweight = 5\n[policy A]\nWeight = 7\n",
     "weir.conf:4: [policy a] admin: given twice: the first is in line 3\n"
     "weir.conf:7: [policy A] Weight: given twice: the first is in line 5\n"},
    {"[policy a]\nmatch = user:x\npriority = low\nread = 5/s\npriority = low\n",
     "weir.conf:5: [policy a] priority: given twice: the first is in line 3\n"},
    {"# comment\nweir:\n  listen: 127.0.0.1:6380\n  upstream: 127.0.0.1:6379\n",
     "weir.conf:2: this file is YAML, but weir reads INI: write [weir] on a line of its own, and below it key = "
     "value, like upstream = 127.0.0.1:6379\n"},
    {"---\na: 1\n",
     "weir.conf:1: this file is YAML, but weir reads INI: write [weir] on a line of its own, and below "
     "it key = value, like upstream = 127.0.0.1:6379\n"},
    {"{\"weir\": {}}\n",
     "weir.conf:1: this file is JSON, but weir reads INI: write [weir] on a line of its own, and "
     "below it key = value, like upstream = 127.0.0.1:6379\n"},
    {"port 6379\nbind 127.0.0.1\n",
     "weir.conf:1: this file is written like redis.conf, but weir reads INI: write [weir] on a line of its own, and "
     "below it key = value, like upstream = 127.0.0.1:6379\n"},
};

static void test_hints(void **state)
{
    (void)state;
    check_mistakes(hint_mistakes, COUNT_OF(hint_mistakes));
}

/* An operator's class may have the name of another program's key. */
static void test_a_class_may_bear_a_name_that_is_known_elsewhere(void **state)
{
    (void)state;
    struct config *config =
        load_text("[class commands]\ncommands = get\n[policy default]\ncommands = 5/s\n");
    assert_non_null(config);
    assert_string_equal(said.text, "");
    config_free(config);
}

static void test_line_mistakes(void **state)
{
    (void)state;
    check_mistakes(line_mistakes, COUNT_OF(line_mistakes));
}

static void test_key_mistakes(void **state)
{
    (void)state;
    check_mistakes(key_mistakes, COUNT_OF(key_mistakes));
}

static void test_address_mistakes(void **state)
{
    (void)state;
    check_mistakes(address_mistakes, COUNT_OF(address_mistakes));
}

static void test_class_mistakes(void **state)
{
    (void)state;
    check_mistakes(class_mistakes, COUNT_OF(class_mistakes));
}

static void test_policy_mistakes(void **state)
{
    (void)state;
    check_mistakes(policy_mistakes, COUNT_OF(policy_mistakes));
}

static void test_cost_mistakes(void **state)
{
    (void)state;
    check_mistakes(cost_mistakes, COUNT_OF(cost_mistakes));
}

static void test_all_mistakes_are_reported_at_once(void **state)
{
    (void)state;
    struct config *config = load_text("[weir]\n"
                                      "lanes = mixed\n"
                                      "nonsense\n"
                                      "workers = -1\n"
                                      "[policy free]\n"
                                      "raed = 5/s\n"
                                      "read = 0/s\n");
    assert_null(config);
    assert_string_equal(
        said.text,
        "weir.conf:3: [weir]: expected: key = value\n"
        "weir.conf:2: [weir] lanes: \"mixed\" is neither shared nor private\n"
        "weir.conf:4: [weir] workers: \"-1\" is not a count: write a whole number, or one with k, m or g "
        "(10k)\n"
        "weir.conf:6: [policy free] raed: unknown class raed (did you mean read?)\n"
        "weir.conf:7: [policy free] read: a rate of 0 never lets anything pass: give at least 1\n"
        "weir.conf:5: [policy free]: the policy binds no client: give it a match (only the policy default "
        "has none)\n");
}

static void test_a_key_that_has_no_effect_any_more_is_refused_with_what_to_do(void **state)
{
    (void)state;
    assert_null(load_text("[weir]\nlane-stall = 1\n"));
    assert_string_equal(
        said.text,
        "weir.conf:2: [weir] lane-stall: unknown key: the setting has no effect since 0.2: remove "
        "this line\n");
}

static void test_an_old_name_of_a_key_is_taken_and_warned_of(void **state)
{
    (void)state;
    struct config *config = load_text("[weir]\nTurns = off\n");
    assert_non_null(config);
    assert_string_equal(
        said.text, "warning: weir.conf:2: [weir] Turns: the key has a new name: write fair-share = "
                   "off\n");
    assert_false(config->rules.has_shares);
    config_free(config);
    config = load_text("[weir]\nturns = on\n");
    assert_true(config->rules.has_shares);
    config_free(config);
    config = load_text("[weir]\nfair-share = off\n");
    assert_string_equal(said.text, "");
    assert_false(config->rules.has_shares);
    config_free(config);
    assert_null(load_text("[weir]\nfair-share = off\nturns = on\n"));
    assert_non_null(strstr(said.text, "[weir] fair-share: given twice: the first is in line 2\n"));
    assert_null(load_text("[weir]\nturns = of\n"));
    assert_non_null(strstr(said.text, "[weir] fair-share: "));
}

static void test_an_old_name_of_a_key_is_proposed_to_nobody(void **state)
{
    (void)state;
    assert_null(load_text("[weir]\nturn = on\n"));
    assert_null(strstr(said.text, "did you mean"));
}

static void test_listeners_behind_proxies(void **state)
{
    (void)state;
    struct config *config = load_text("[weir]\n"
                                      "listen = 127.0.0.1:1, 0.0.0.0:2 proxy, unix:/tmp/a  PROXY\n"
                                      "proxy-protocol-from = 10.0.0.0/8, 192.0.2.7\n"
                                      "proxy-protocol-from = 2001:db8::/32, Unix\n");
    assert_non_null(config);
    assert_int_equal(config->n_listens, 3);
    assert_false(config->listens[0].has_proxy_header);
    assert_true(config->listens[1].has_proxy_header);
    assert_string_equal(config->listens[1].address.host, "0.0.0.0");
    assert_true(config->listens[2].has_proxy_header);
    assert_string_equal(config->listens[2].address.host, "/tmp/a");
    assert_int_equal(config->rules.proxies.count, 3);
    assert_true(config->rules.proxies.has_unix);
    config_free(config);
}

/*
 * Prefixes that older versions refused are still refused. All other prefixes of the table give a
 * warning.
 */
static void test_every_prefix_that_clients_act_on_is_said(void **state)
{
    static const char *const refused[] = {"TRYAGAIN",    "LOADING",    "BUSY",      "READONLY",
                                          "CLUSTERDOWN", "MASTERDOWN", "MOVED",     "ASK",
                                          "NOAUTH",      "NOPERM",     "WRONGPASS", "NOSCRIPT",
                                          "EXECABORT",   "OOM",        "MISCONF",   "UNBLOCKED"};
    static const char *const warned[] = {"NOPROTO",    "NOREPLICAS",   "ERR",      "WRONGTYPE",
                                         "CROSSSLOT",  "NOMASTERLINK", "NOQUORUM", "BUSYGROUP",
                                         "BUSYKEY",    "NOGOODSLAVE",  "INPROG",   "NOTBUSY",
                                         "UNKILLABLE", "DENIED",       "IOERR",    "NOGROUP",
                                         "INVALIDOBJ", "IDONTKNOW",    "REDIRECT", "UPSTREAM"};
    char text[128];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        snprintf(text, sizeof text, "[weir]\nerror-prefix = %s\n", refused[i]);
        assert_null(load_text(text));
        assert_int_equal(said.errors, 1);
    }
    for (size_t i = 0; i < COUNT_OF(warned); i++) {
        snprintf(text, sizeof text, "[weir]\nerror-prefix = %s\n", warned[i]);
        struct config *config = load_text(text);
        assert_non_null(config);
        assert_string_equal(config->rules.error_prefix, warned[i]);
        assert_int_equal(said.warnings, 1);
        config_free(config);
    }
}

/* ---- odd files ---- */

static void test_a_missing_file(void **state)
{
    (void)state;
    assert_null(load("nowhere.conf"));
    assert_string_equal(said.text, "nowhere.conf: cannot be opened: No such file or directory\n");
}

static void test_a_directory(void **state)
{
    (void)state;
    assert_null(load("."));
    assert_string_equal(said.text, ".: is a directory: name a file\n");
}

static void test_a_nul_byte(void **state)
{
    static const char bytes[] = "[weir]\nwork\0ers = 1\n; \0\n";
    (void)state;
    write_bytes("weir.conf", bytes, sizeof bytes - 1);
    assert_null(load("weir.conf"));
    assert_string_equal(
        said.text, "weir.conf:2: [weir]: the line holds a NUL byte: this is not a text file\n"
                   "weir.conf:3: [weir]: the line holds a NUL byte: this is not a text file\n");
}

static void test_a_line_of_ten_megabytes(void **state)
{
    size_t n = 10 << 20;
    char *text = mem_alloc(n);
    (void)state;
    memset(text, 'x', n);
    write_bytes("weir.conf", text, n);
    free(text);
    assert_null(load("weir.conf"));
    assert_string_equal(
        said.text,
        "weir.conf:1: the line has 10485760 bytes, and the limit is 198: repeat the key for the "
        "rest\n");
}

static void test_a_file_without_end(void **state)
{
    (void)state;
    assert_null(load("/dev/zero"));
    assert_string_equal(said.text,
                        "/dev/zero:1: the line holds a NUL byte: this is not a text file\n"
                        "/dev/zero: is larger than 16 MiB\n");
}

static void test_too_many_errors(void **state)
{
    char text[2048] = "[weir]\n";
    (void)state;
    for (size_t i = 0; i < 300; i++)
        strcat(text, "x\n");
    assert_null(load_text(text));
    assert_int_equal(said.errors, 101);
    assert_non_null(strstr(said.text, "too many errors: the rest is not shown\n"));
}

/* The longest line passes, one byte more does not. Blanks around a line do not count. */
static void test_the_longest_line(void **state)
{
    char text[512];
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        int host = 198 - 17 + extra; /* the rest is "listen = ", ":6380," and "b:1" */
        snprintf(text, sizeof text, "[weir]\n  listen = %0*d:6380,b:1 \r\n", host - 1, 0);
        struct config *config = load_text(text);
        if (extra == 0) {
            assert_non_null(config);
            assert_int_equal(config->n_listens, 2);
            assert_string_equal(config->listens[1].address.host, "b");
        } else {
            assert_null(config);
        }
        config_free(config);
    }
}

/* ---- good files ---- */

static void check_defaults(const struct config *config)
{
    assert_int_equal(config->n_listens, 1);
    assert_string_equal(config->listens[0].address.host, "127.0.0.1");
    assert_int_equal(config->listens[0].address.port, 6380);
    assert_false(config->listens[0].address.is_unix);
    assert_string_equal(config->sources.addresses[0].host, "127.0.0.1");
    assert_int_equal(config->sources.addresses[0].port, 6379);
    assert_null(config->upstream_user);
    assert_null(config->rules.upstream_password.newest);
    assert_in_range(config->workers, 1, 256);
    assert_false(config->lanes_private);
    assert_int_equal(config->rules.max_clients, 10000);
    assert_int_equal(config->max_subjects, 1000000);
    assert_int_equal(config->rules.output_limit_bytes, 64 << 20);
    assert_int_equal(config->connect_timeout_ns, NS_PER_S);
    assert_int_equal(config->upstream_timeout_ns, 0);
    assert_int_equal(config->rules.identity.count, 2);
    assert_string_equal(config->rules.error_prefix, "THROTTLED");
    assert_int_equal(config->rules.cell, QUOTA_CELL_PREFIX);
    assert_false(config->is_shadow);
    assert_null(config->admin_socket);
    assert_null(config->admin_listen.host);
    assert_null(config->admin_hosts);
    assert_int_equal(policies_count(config->rules.policies), 0);
}

static void test_no_file(void **state)
{
    (void)state;
    struct config *config = load(NULL);
    assert_non_null(config);
    assert_true(config->is_default);
    check_defaults(config);
    config_free(config);
}

static void test_empty_files(void **state)
{
    static const char *const texts[] = {"", "\n\n", "; only words\n# more words\n",
                                        "\xef\xbb\xbf[weir]\r\n", "[weir]"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct config *config = load_text(texts[i]);
        assert_string_equal(said.text, "");
        assert_non_null(config);
        assert_false(config->is_default);
        check_defaults(config);
        config_free(config);
    }
}

static void test_every_key(void **state)
{
    (void)state;
    write_bytes("secret", "s3cret\n", 7);
    chmod("secret", 0600);
    struct config *config =
        load_text("[WEIR] ; any case\n"
                  "   listen = 0.0.0.0:0, [::1]:6380   ; indented, with a comment\n"
                  "listen: unix:/run/weir.sock\n"
                  "Upstream = unix:/run/redis.sock\n"
                  "upstream-user = weir\n"
                  "upstream-password-file = secret\n"
                  "workers = 3\n"
                  "lanes = Private\n"
                  "max-clients = 5k\n"
                  "max-subjects = 2m\n"
                  "output-limit = 1gb\n"
                  "connect-timeout = 250ms\n"
                  "upstream-timeout = 3s\n"
                  "identity = user\n"
                  "identity = ip/24\n"
                  "error-prefix = SLOWDOWN\n"
                  "mode = Shadow\n"
                  "[Admin]\n"
                  "socket = /run/weir/admin.sock\nlisten = 127.0.0.1:9380\n"
                  "host = weir, ops.example\nhost = w\n");
    assert_string_equal(said.text, "");
    assert_non_null(config);
    assert_int_equal(config->n_listens, 3);
    assert_string_equal(config->listens[0].address.host, "0.0.0.0");
    assert_int_equal(config->listens[0].address.port, 0);
    assert_string_equal(config->listens[1].address.host, "::1");
    assert_int_equal(config->listens[1].address.port, 6380);
    assert_true(config->listens[2].address.is_unix);
    assert_string_equal(config->listens[2].address.host, "/run/weir.sock");
    assert_true(config->sources.addresses[0].is_unix);
    assert_string_equal(config->upstream_user, "weir");
    assert_string_equal(config->rules.upstream_password.newest, "s3cret");
    assert_int_equal(config->workers, 3);
    assert_true(config->lanes_private);
    assert_int_equal(config->rules.max_clients, 5000);
    assert_int_equal(config->max_subjects, 2000000);
    assert_int_equal(config->rules.output_limit_bytes, 1 << 30);
    assert_int_equal(config->connect_timeout_ns, 250 * NS_PER_MS);
    assert_int_equal(config->upstream_timeout_ns, 3 * NS_PER_S);
    assert_int_equal(config->rules.identity.count, 2);
    assert_string_equal(config->rules.error_prefix, "SLOWDOWN");
    assert_true(config->is_shadow);
    assert_true(policies_is_shadow(config->rules.policies));
    assert_string_equal(config->admin_socket, "/run/weir/admin.sock");
    assert_string_equal(config->admin_listen.host, "127.0.0.1");
    assert_int_equal(config->admin_listen.port, 9380);
    assert_string_equal(config->admin_hosts, "weir,ops.example,w");
    config_free(config);
}

/* The words of a key are in the order of its enum. */
static void test_words_mean_what_their_enum_says(void **state)
{
    static const char *const formats[LOG_FORMATS] = {
        [LOG_AS_TEXT] = "text", [LOG_AS_LOGFMT] = "logfmt", [LOG_AS_JSON] = "json"};
    char text[256];
    (void)state;
    for (int level = 0; level < LOG_LEVELS; level++)
        for (int format = 0; format < LOG_FORMATS; format++) {
            snprintf(text, sizeof text, "[weir]\nlog-level = %s\nlog-format = %s\n",
                     log_level_name((enum log_level)level), formats[format]);
            struct config *config = load_text(text);
            assert_int_equal(config->log_level, level);
            assert_int_equal(config->log_format, format);
            config_free(config);
        }
    struct config *config = load_text(
        "[weir]\ncl-throttle = raw\nlimit-when-down = deny\nlanes = private\nmode = shadow\n"
        "tls-auth-clients = optional\nupstream-tls-verify = no\nslowlog-log-slower-than = off\n");
    assert_int_equal(config->rules.cell, QUOTA_CELL_RAW);
    assert_int_equal(config->rules.when_down, QUOTA_DOWN_DENY);
    assert_true(config->lanes_private && config->is_shadow &&
                config->upstream_tls_settings.is_unverified);
    assert_int_equal(config->tls_settings.auth, TLS_AUTH_OPTIONAL);
    assert_int_equal(config->rules.slow_ns, SLOWLOG_OFF);
    config_free(config);
}

static void test_the_printed_keys_are_a_good_configuration(void **state)
{
    char *text = NULL;
    size_t len = 0;
    (void)state;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    config_help_print(out);
    fclose(out);
    for (size_t i = 0; i < config_keys_count(); i++)
        assert_non_null(strstr(text, config_key_at(i)->name));
    assert_non_null(
        strstr(text, "\n; time from 1ms to 1d, 0 or off\n;slowlog-log-slower-than = 10ms\n"));
    assert_non_null(
        strstr(text, "\n; client or upstream; needs a restart\n;clients-as = client\n"));
    struct config *config = load_text(text);
    assert_non_null(config);
    config_free(config);
    free(text);
}

static void test_classes_and_policies(void **state)
{
    (void)state;
    struct config *config = load_text("[policy free]\n"
                                      "match = user:free-*\n"
                                      "match = ip:10.1.0.0/16, name:batch\n"
                                      "heavier = 5/s, 100/h burst 10\n"
                                      "[class heavier]      ; used above, and built on one below\n"
                                      "commands = heavy, -sort\n"
                                      "[class heavy]\n"
                                      "commands = keys, sort\n"
                                      "[Class HEAVY]\n"
                                      "commands = smembers\n"
                                      "[policy default]\n"
                                      "all = 20000/s\n"
                                      "[policy FREE]\n"
                                      "cmd.publish = 50/s\n");
    assert_string_equal(said.text, "");
    assert_non_null(config);
    assert_int_equal(policies_count(config->rules.policies), 2);
    const struct policy *free_policy = policies_at(config->rules.policies, 0);
    assert_string_equal(free_policy->name, "free");
    assert_int_equal(free_policy->n_matches, 3);
    assert_int_equal(free_policy->n_limits, 3);
    const struct class *heavier = free_policy->limits[0].class;
    assert_true(class_has(heavier, table, command_by_name(table, SLICE("keys"))));
    assert_true(class_has(heavier, table, command_by_name(table, SLICE("smembers"))));
    assert_false(class_has(heavier, table, command_by_name(table, SLICE("sort"))));
    config_free(config);
}

static void test_every_kind_of_limit(void **state)
{
    static const struct {
        enum unit unit;
        enum scope scope;
        enum action action;
    } expected[] = {
        {UNIT_COMMANDS, PER_SUBJECT, OVER_REFUSE},     {UNIT_COMMANDS, PER_POLICY, OVER_REFUSE},
        {UNIT_COMMANDS, PER_SUBJECT, OVER_DELAY},      {UNIT_COMMANDS, PER_SUBJECT, OVER_DENY},
        {UNIT_COST, PER_CONNECTION, OVER_SHADOW},      {UNIT_BYTES_IN, PER_SUBJECT, OVER_CLOSE},
        {UNIT_BYTES_OUT, PER_SUBJECT, OVER_DELAY},     {UNIT_INFLIGHT, PER_SUBJECT, OVER_REFUSE},
        {UNIT_CONNECTIONS, PER_SUBJECT, OVER_CLOSE},   {UNIT_CONNECTS, PER_POLICY, OVER_CLOSE},
        {UNIT_AUTH_FAILURES, PER_SUBJECT, OVER_CLOSE},
    };
    (void)state;
    struct config *config = load_text("[policy default]\n"
                                      "admin = yes\n"
                                      "read = 10/s, 100/s per policy\n"
                                      "write = 10/s over delay 200ms\n"
                                      "@scripting = deny\n"
                                      "cost = 5k/s per connection over shadow\n"
                                      "bytes-in = 1mb/s burst 4mb over close\n"
                                      "bytes-out = 10mb/s over delay 1s\n"
                                      "inflight = 64\n"
                                      "connections = 50\n"
                                      "connects = 10/s per policy\n"
                                      "auth-failures = 5/m\n"
                                      "[cost]\n"
                                      "keys = 100\n"
                                      "mget = 1 per key\n"
                                      "@slow = 5\n");
    assert_string_equal(said.text, "");
    assert_non_null(config);
    const struct policy *policy = policies_at(config->rules.policies, 0);
    assert_true(policy->is_admin);
    assert_int_equal(policy->n_limits, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(policy->limits[i].unit, expected[i].unit);
        assert_int_equal(policy->limits[i].scope, expected[i].scope);
        assert_int_equal(policy->limits[i].action, expected[i].action);
    }
    config_free(config);
}

static void test_unknown_commands_are_warnings(void **state)
{
    (void)state;
    struct config *config = load_text("[class heavy]\ncommands = keys, smembrs\n"
                                      "[policy default]\ncmd.publsh = 5/s\n");
    assert_non_null(config);
    assert_string_equal(
        said.text,
        "warning: weir.conf:2: [class heavy] commands: smembrs is not a known command (did you mean "
        "smembers?)\n"
        "warning: weir.conf:4: [policy default] cmd.publsh: publsh is not a known command (did you mean "
        "publish?)\n");
    config_free(config);
}

/* ---- the password file ---- */

static void check_secret(const char *bytes, size_t n, mode_t mode, const char *password,
                         const char *expected)
{
    write_bytes("secret", bytes, n);
    chmod("secret", mode);
    struct config *config = load_text("[weir]\nupstream-password-file = secret\n");
    assert_string_equal(said.text, expected);
    if (password) {
        assert_non_null(config);
        assert_string_equal(config->rules.upstream_password.newest, password);
    } else {
        assert_null(config);
    }
    config_free(config);
}

#define KEY "weir.conf:2: [weir] upstream-password-file: "

static void test_password_files(void **state)
{
    char longest[4098];
    (void)state;
    check_secret("pass", 4, 0600, "pass", "");
    check_secret("pa ss\r\n", 7, 0600, "pa ss", "");
    check_secret("pass\n", 5, 0400, "pass", "");
    check_secret("pass\n", 5, 0640, "pass",
                 "warning: " KEY "other users can read secret: chmod 600 it\n");
    check_secret("", 0, 0600, NULL, KEY "the file is empty: write the password into it\n");
    check_secret("\n", 1, 0600, NULL, KEY "the file is empty: write the password into it\n");
    check_secret("a\nb\n", 4, 0600, NULL,
                 KEY "the file has more than one line: write only the password into it\n");
    check_secret("a\0b", 3, 0600, NULL, KEY "the password holds a NUL byte\n");
    memset(longest, 'p', sizeof longest);
    check_secret(longest, 4097, 0600, NULL, KEY "the password is longer than 4096 bytes\n");
    longest[4096] = '\n';
    longest[4097] = '\0';
    write_bytes("secret", longest, 4097);
    struct config *config = load_text("[weir]\nupstream-password-file = secret\n");
    assert_non_null(config);
    assert_int_equal(strlen(config->rules.upstream_password.newest), 4096);
    config_free(config);

    unlink("secret");
    assert_null(load_text("[weir]\nupstream-password-file = secret\n"));
    assert_string_equal(said.text, KEY "secret cannot be opened: No such file or directory\n");
    assert_null(load_text("[weir]\nupstream-password-file = /dev/null\n"));
    assert_string_equal(said.text, KEY "/dev/null is not a regular file\n");
}

/* ---- printing ---- */

static void test_addresses_are_printed_as_written(void **state)
{
    static const char *const written[] = {"127.0.0.1:0", "[2001:db8::1]:6380",
                                          "unix:/run/weir.sock"};
    char text[128];
    (void)state;
    struct config *config =
        load_text("[weir]\nlisten = 127.0.0.1:0, [2001:db8::1]:6380, unix:/run/weir.sock\n");
    assert_non_null(config);
    for (size_t i = 0; i < COUNT_OF(written); i++) {
        address_print(&config->listens[i].address, text, sizeof text);
        assert_string_equal(text, written[i]);
    }
    config_free(config);
}

/* ---- in memory ---- */

static const char in_memory[] = "[weir]\n"
                                "listen = a:1\n"
                                "listen = b:1\n"
                                "[Policy FREE]\n"
                                "match = user:free-*\n"
                                "Read = 10/s\n"
                                "write = 5/s\n"
                                "[policy free]\n"
                                "read = 100/m\n";

static struct config_file read_text(const char *text)
{
    struct config_file file = {.path = "weir.conf", .report = on_report, .arg = &said};
    said = (struct said){0};
    write_bytes("weir.conf", text, strlen(text));
    config_file_read(&file);
    return file;
}

static struct line_name line_of(const char *policy, const char *key)
{
    return (struct line_name){SECTION_POLICY, slice_str(policy), slice_str(key)};
}

static void check_value(const struct config_file *file, const char *key, const char *expected)
{
    struct line_name name = line_of("free", key);
    char *value = config_file_value(file, &name);
    if (expected)
        assert_string_equal(value, expected);
    else
        assert_null(value);
    free(value);
}

static void test_lines_are_replaced(void **state)
{
    (void)state;
    struct config_file file = read_text(in_memory);
    struct config_file copy;
    config_file_copy(&copy, &file);
    copy.report = on_report;
    copy.arg = &said;
    struct line_name read = line_of("Free", "READ"), write = line_of("free", "write"),
                     all = line_of("free", "all");
    check_value(&copy, "read", "10/s, 100/m");
    config_file_replace(&copy, &read, "7/s");
    config_file_replace(&copy, &write, NULL);
    config_file_replace(&copy, &write, NULL);
    config_file_replace(&copy, &all, "1/s, 2/m");
    check_value(&copy, "read", "7/s");
    check_value(&copy, "write", NULL);
    check_value(&copy, "all", "1/s, 2/m");
    check_value(&file, "read", "10/s, 100/m");
    struct config *config = config_build(&copy, table, CONFIG_LIVE);
    assert_string_equal(said.text, "");
    assert_int_equal(policies_at(config->rules.policies, 0)->n_limits, 3);
    assert_null(config->listens);
    config_free(config);

    config_file_replace(&copy, &all, "0/s");
    assert_null(config_build(&copy, table, CONFIG_LIVE));
    assert_string_equal(
        said.text, "[Policy FREE] all: a rate of 0 never lets anything pass: give at least 1\n");
    config_file_fini(&copy);
    config_file_fini(&file);
}

static void test_a_setting_in_a_section_that_there_was_not(void **state)
{
    const struct line_name mode = {SECTION_WEIR, SLICE(""), SLICE("mode")};
    (void)state;
    struct config_file file = read_text("");
    config_file_replace(&file, &mode, "shadow");
    struct config *config = config_build(&file, table, CONFIG_LIVE);
    assert_string_equal(said.text, "");
    assert_true(config->is_shadow);
    assert_string_equal(config->rules.error_prefix, "THROTTLED");
    config_free(config);
    config_file_fini(&file);
}

static void check_difference(const struct difference *d, const char *section, const char *what,
                             const char *running, const char *in_file)
{
    assert_string_equal(d->section, section);
    assert_string_equal(d->what, what);
    assert_string_equal(d->running, running);
    assert_string_equal(d->file, in_file);
}

static bool needs_restart(const struct difference *difference)
{
    struct line_name name = difference_line(difference);
    const struct config_key *key = config_key_find(name.kind, name.key);
    return key != NULL && key->needs_restart;
}

static void test_differences(void **state)
{
    (void)state;
    struct config_file running = read_text(in_memory);
    struct config_file file =
        read_text("[weir]\nlisten = a:1 , b:2\nmode = enforce\nmax-clients = 5\n"
                  "[policy free]\nread = 10/s, 100/m\nall = 1/s\nmatch = user:free-*\n"
                  "[class c]\ncommands = get\n[cost]\nKEYS = 2\n");
    struct differences d = config_diff(&running, &file);
    assert_int_equal(d.count, 6);
    check_difference(&d.at[0], "weir", "listen", "a:1, b:1", "a:1 , b:2");
    check_difference(&d.at[1], "policy free", "write", "5/s", "");
    check_difference(&d.at[2], "weir", "max-clients", "10000", "5");
    check_difference(&d.at[3], "policy free", "all", "", "1/s");
    check_difference(&d.at[4], "class c", "commands", "", "get");
    check_difference(&d.at[5], "cost", "keys", "", "2");
    assert_true(needs_restart(&d.at[0]));
    for (size_t i = 1; i < d.count; i++)
        assert_false(needs_restart(&d.at[i]));
    differences_fini(&d);
    config_file_fini(&running);
    config_file_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_a_class_may_bear_a_name_that_is_known_elsewhere),
        cmocka_unit_test(test_line_mistakes),
        cmocka_unit_test(test_key_mistakes),
        cmocka_unit_test(test_address_mistakes),
        cmocka_unit_test(test_class_mistakes),
        cmocka_unit_test(test_policy_mistakes),
        cmocka_unit_test(test_cost_mistakes),
        cmocka_unit_test(test_all_mistakes_are_reported_at_once),
        cmocka_unit_test(test_a_key_that_has_no_effect_any_more_is_refused_with_what_to_do),
        cmocka_unit_test(test_an_old_name_of_a_key_is_taken_and_warned_of),
        cmocka_unit_test(test_an_old_name_of_a_key_is_proposed_to_nobody),
        cmocka_unit_test(test_listeners_behind_proxies),
        cmocka_unit_test(test_every_prefix_that_clients_act_on_is_said),
        cmocka_unit_test(test_a_missing_file),
        cmocka_unit_test(test_a_directory),
        cmocka_unit_test(test_a_nul_byte),
        cmocka_unit_test(test_a_line_of_ten_megabytes),
        cmocka_unit_test(test_a_file_without_end),
        cmocka_unit_test(test_too_many_errors),
        cmocka_unit_test(test_the_longest_line),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_words_mean_what_their_enum_says),
        cmocka_unit_test(test_the_printed_keys_are_a_good_configuration),
        cmocka_unit_test(test_classes_and_policies),
        cmocka_unit_test(test_every_kind_of_limit),
        cmocka_unit_test(test_unknown_commands_are_warnings),
        cmocka_unit_test(test_password_files),
        cmocka_unit_test(test_addresses_are_printed_as_written),
        cmocka_unit_test(test_lines_are_replaced),
        cmocka_unit_test(test_a_setting_in_a_section_that_there_was_not),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
