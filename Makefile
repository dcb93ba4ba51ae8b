# weir: build, run, test. `make help` lists the targets.

VERSION = 0.2.0
PREFIX  = /usr/local
DESTDIR =
SYSCONFDIR = /etc
T       = 60

WARN  = -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wvla -Wundef -Wstrict-prototypes -Wmissing-prototypes -Werror
INIH  = $(or $(shell pkg-config --modversion inih 2>/dev/null),unknown)
BASE  = -std=gnu11 -g $(WARN) -Isrc -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -DINIH_VERSION='"$(INIH)"' -pthread
TLS   = -lssl -lcrypto
LIBS  = -luv -lhiredis -linih -lmicrohttpd $(TLS)

# ---- flavours: <name>_CC, <name>_CFLAGS, <name>_LDFLAGS; objects live under build/<name>/ ----

HARDEN          = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fPIE
HARDEN         += $(if $(filter x86_64 i686,$(shell uname -m)),-fcf-protection)
release_CC      = $(CC)
release_CFLAGS  = -O2 $(HARDEN)
release_LDFLAGS = -pie -Wl,-z,relro,-z,now,-z,noexecstack

# Reports name lines, not values: -g1 says no more, and compiles in a tenth less time than -g.
SANITIZED    = -O1 -g1 -fno-omit-frame-pointer
asan_CC      = $(CC)
asan_CFLAGS  = $(SANITIZED) -fno-pie -fsanitize=address,undefined -fno-sanitize-recover=all
# Tests start weir and the simulator thousands of times, and finding out where everything is would be an eighth of each.
# libasan stays shared: tests put libraries of their own before it.
asan_LDFLAGS = -no-pie -fsanitize=address,undefined -static-libubsan

tsan_CC      = $(CC)
tsan_CFLAGS  = $(SANITIZED) -fsanitize=thread
tsan_LDFLAGS = -fsanitize=thread

# Only that clang compiles and links all of it counts: make test-long. What clang warns of, clang-tidy tells.
clang_CC      = clang
clang_CFLAGS  = -O0 -g0
clang_LDFLAGS =

fuzz_CC      = clang
fuzz_CFLAGS  = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
fuzz_LDFLAGS = -fsanitize=fuzzer,address,undefined

# What the simulator alone reaches: make sim-coverage. Paths as they stand here, whoever compiles.
cov_CC      = clang
cov_CFLAGS  = -O1 -DNDEBUG -Wno-unused-variable -fprofile-instr-generate -fcoverage-mapping -fcoverage-compilation-dir=.
cov_LDFLAGS = -fprofile-instr-generate

# Of the many programs of the unit tests: the linker that takes a third of the time, where there is one.
QUICK_LD := $(if $(shell command -v ld.gold),-fuse-ld=gold)

FLAVOURS = release asan tsan clang fuzz cov

# What is being built, in a word; V=1 shows the commands, -s nothing.
is_silent = $(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(if $(V),,$(if $(is_silent),@,@echo "  $(1)";))

# ---- what is built from what ----

SRC     = $(wildcard src/*/*.c src/*/*/*.c)
FOLDERS = $(patsubst %/,%,$(sort $(dir $(SRC))))
HEADERS = $(wildcard src/*/*.h src/*/*/*.h)
SCRIPTS = $(wildcard src/upstream/scripts/*.lua)
PAGE    = $(wildcard src/admin/page/*)
PURE    = $(wildcard src/base/*.c src/resp/*.c src/limit/*.c src/limit/*/*.c) $(addprefix src/quota/,algorithm.c penalty.c rule.c option.c request_parse.c question.c outcome.c reading.c answer.c local.c named.c prefix.c)
CONFIG  = $(wildcard src/run/config/*.c) src/net/tls_context.c src/front/rules.c src/admin/host.c
GOVERN  = $(addprefix src/,run/commands/config_manager.c run/commands/candidate.c run/commands/live_rules.c run/commands/admin_line.c run/commands/set_lines.c run/commands/handover.c run/commands/admin_unsaved.c front/commands/admin_command.c)
CONTROL = src/upstream/control_reply.c
UNITS   = $(wildcard tests/unit/test_*.c)
THREADS = $(wildcard tests/unit/test_*_threads.c)
FUZZERS = $(wildcard tests/fuzz/fuzz_*.c)
MODEL   = $(wildcard tests/sim/redis*.c)
LUA     = lua5.1
DRIVE   = $(wildcard bench/drive/*.c)
MICRO   = $(wildcard bench/micro/*.c)
SESSION = $(wildcard tests/fuzz/session_*.c)
SIM     = $(filter-out $(MODEL),$(wildcard tests/sim/*.c))
# Of the simulator, what owns time, network and loops.
WORLD   = $(addprefix tests/sim/,due.c epoll.c heap.c kernel.c loops.c pipe.c reply.c splice.c syscalls.c threads.c trace.c uv.c \
          uv_rest.c uv_wake.c world.c)
# What the simulator puts in the place of the system's: tests/sim/syscalls.c, tests/sim/threads.c.
SIM_WRAPS = read write writev send socket bind listen accept4 connect getsockopt setsockopt getsockname fcntl \
            ioctl shutdown close clock_gettime getrandom getpid getppid geteuid getrlimit setrlimit malloc_trim \
            epoll_create1 epoll_ctl epoll_wait pipe2 splice pthread_create pthread_join pthread_setname_np
# Of weir's own, what it asks about: tests/sim/lane_laws.c, tests/sim/wait_laws.c.
WATCHED   = lanes_init lanes_close front_init front_close

objects = $(patsubst %.c,build/$(1)/%.o,$(2))
UNIT_BINS   = $(UNITS:tests/unit/%.c=build/asan/%)
THREAD_BINS = $(THREADS:tests/unit/%.c=build/tsan/%)
FUZZ_BINS   = $(FUZZERS:tests/fuzz/%.c=build/fuzz/%)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

all: build/weir ## build build/weir (the default)

define flavour
build/$(1)/%.o: %.c Makefile
	@mkdir -p $$(@D)
	$$(call say,$(1) $$<)$$($(1)_CC) $(BASE) $$($(1)_CFLAGS) $$(CFLAGS) -MMD -MP -c $$< -o $$@

build/$(1)/src/upstream/script.o: $(SCRIPTS)
build/$(1)/src/admin/http.o: $(PAGE)

build/$(1)/weir: $(call objects,$(1),$(SRC))
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) -pthread $$^ -o $$@ $(LIBS)

build/$(1)/test_%: build/$(1)/tests/unit/test_%.o $(call objects,$(1),$(PURE))
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $(QUICK_LD) $$(LDFLAGS) -pthread $$^ -o $$@ -lcmocka -lhiredis -linih $(TLS) -lm

build/$(1)/fuzz_%: build/$(1)/tests/fuzz/fuzz_%.o $(call objects,$(1),$(PURE))
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) -pthread $$^ -o $$@ -lhiredis -linih $(TLS)

build/$(1)/tests/sim/%.o: tests/sim/%.c Makefile
	@mkdir -p $$(@D)
	$$(call say,$(1) $$<)$$($(1)_CC) $(BASE) -I. $$(shell pkg-config --cflags $(LUA)) $$($(1)_CFLAGS) $$(CFLAGS) -MMD -MP -c $$< -o $$@

build/$(1)/sim_redis: $(call objects,$(1),$(MODEL))
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) $$^ -o $$@ $$(shell pkg-config --libs $(LUA)) -lm

build/$(1)/drive: $(call objects,$(1),$(DRIVE) $(wildcard src/base/*.c src/resp/*.c))
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) -pthread $$^ -o $$@ $(TLS) -lm

build/$(1)/micro: $(call objects,$(1),$(MICRO) $(PURE))
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) -pthread $$^ -o $$@

# The model's own names stay its own: some of them are weir's too.
build/$(1)/sim_model.o: $(call objects,$(1),$(filter-out tests/sim/redis_main.c,$(MODEL)))
	$$(call say,$(1) $$@)ld -r $$^ -o $$@ && objcopy -w --keep-global-symbol='redis_*' $$@

# What weir asks for may be refused: tests/sim/memory.c. base/mem.c is the simulator's too.
build/$(1)/sim_weir.o: $(call objects,$(1),$(filter-out src/run/main.c src/base/mem.c src/net/resolver.c,$(SRC)))
	$$(call say,$(1) $$@)ld -r $(WATCHED:%=--wrap=%) $$^ -o $$@ && objcopy $(foreach f,malloc calloc realloc strdup strndup mem_would_give,--redefine-sym $(f)=sim_$(f)) $$@

build/$(1)/sim: $(call objects,$(1),$(SIM) src/base/mem.c) build/$(1)/sim_weir.o build/$(1)/sim_model.o
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) -pthread $(SIM_WRAPS:%=-Wl,--wrap=%) $(WATCHED:%=-Wl,--wrap=%) $$^ -o $$@ \
	    $(filter-out -luv,$(LIBS)) $$(shell pkg-config --libs $(LUA)) -lm

build/$(1)/tests/fuzz/%.o: $(1)_CFLAGS += -I.
# The sanitizer's and the fuzzer's own calls, which are linked in too, go to the system.
build/$(1)/session.o: $(call objects,$(1),tests/fuzz/fuzz_session.c $(SESSION) $(WORLD) $(filter-out src/run/main.c,$(SRC)))
	$$(call say,$(1) $$@)ld -r $(SIM_WRAPS:%=--wrap=%) --wrap=mem_given --wrap=mem_would_give $$^ -o $$@

build/$(1)/fuzz_session: build/$(1)/session.o
	$$(call say,$(1) $$@)$$($(1)_CC) $$($(1)_CFLAGS) $$($(1)_LDFLAGS) $$(LDFLAGS) -pthread $$^ -o $$@ $(filter-out -luv,$(LIBS))

build/$(1)/test_config build/$(1)/test_config_check build/$(1)/test_dialling build/$(1)/test_config_sources build/$(1)/test_config_variable build/$(1)/test_config_dump build/$(1)/fuzz_config build/$(1)/test_config_manager: $(call objects,$(1),$(CONFIG))
build/$(1)/test_config_manager: $(call objects,$(1),$(GOVERN))
build/$(1)/test_watch: $(call objects,$(1),src/run/watch.c)
build/$(1)/test_history: $(call objects,$(1),src/admin/snapshot.c)
build/$(1)/test_findings build/$(1)/test_figures: $(call objects,$(1),src/upstream/lane/lack.c $(addprefix src/admin/,findings.c holders.c snapshot.c))
build/$(1)/test_calls: $(call objects,$(1),src/upstream/lane/calls.c)
build/$(1)/test_lane_state: $(call objects,$(1),src/upstream/lane/lane_state.c)
build/$(1)/test_host: $(call objects,$(1),src/admin/host.c)
build/$(1)/test_reply_mode: $(call objects,$(1),src/front/client/reply_mode.c)
build/$(1)/test_client_state: $(call objects,$(1),src/front/client/client_state.c)
build/$(1)/test_transaction: $(call objects,$(1),src/front/session/transaction.c)
build/$(1)/test_replies: $(call objects,$(1),src/front/route/replies.c)
build/$(1)/test_spread: $(call objects,$(1),src/front/route/replies.c src/front/cluster/spread.c)
build/$(1)/test_spread: LDFLAGS += -Wl,--wrap=malloc
build/$(1)/test_unanswered: $(call objects,$(1),src/front/route/unanswered.c)
build/$(1)/test_returned: $(call objects,$(1),src/front/route/unanswered.c)
build/$(1)/test_block_time build/$(1)/test_hello: $(call objects,$(1),src/front/route/request.c)
build/$(1)/test_queue: $(call objects,$(1),src/front/session/transaction.c)
build/$(1)/test_proxy_header build/$(1)/fuzz_proxy_header: $(call objects,$(1),src/net/proxy_header.c)
build/$(1)/test_docs build/$(1)/test_command_merge build/$(1)/fuzz_command_merge: $(call objects,$(1),src/quota/command_merge.c)
build/$(1)/test_greeting: $(call objects,$(1),$(addprefix src/upstream/,lane/greeting.c lane/own_words.c login/login.c))
build/$(1)/test_own_login: $(call objects,$(1),src/upstream/login/login.c)
build/$(1)/test_owned: $(call objects,$(1),$(addprefix src/upstream/,lane/owned.c login/login.c))
build/$(1)/test_auth_users: $(call objects,$(1),$(addprefix src/upstream/login/,auth_users.c login.c))
build/$(1)/test_mastership: $(call objects,$(1),src/run/topology/mastership.c)
build/$(1)/test_cluster_pace: $(call objects,$(1),src/run/topology/question_pace.c)
build/$(1)/test_failover_story: $(call objects,$(1),src/run/topology/failover_story.c)
build/$(1)/test_backoff: $(call objects,$(1),src/upstream/node/backoff.c)
build/$(1)/test_pulse: $(call objects,$(1),src/upstream/node/pulse.c)
build/$(1)/test_offsets: $(call objects,$(1),src/upstream/node/offsets.c)
build/$(1)/test_lack: $(call objects,$(1),src/upstream/lane/lack.c)
build/$(1)/test_unable: $(call objects,$(1),src/quota/away.c src/upstream/node/not_run.c)
build/$(1)/test_room: $(call objects,$(1),src/upstream/lane/room.c)
build/$(1)/test_channels build/$(1)/test_confirmation: $(call objects,$(1),src/front/session/channels.c)
build/$(1)/test_not_run build/$(1)/test_redirect: $(call objects,$(1),src/upstream/node/not_run.c)
build/$(1)/test_cluster_nodes: $(call objects,$(1),src/upstream/node/cluster_nodes.c)
build/$(1)/test_cluster_view build/$(1)/fuzz_cluster_nodes: $(call objects,$(1),src/run/topology/cluster_view.c src/upstream/node/cluster_nodes.c)
build/$(1)/test_emulated: $(call objects,$(1),src/front/cluster/emulated.c)
build/$(1)/test_topology: $(call objects,$(1),src/upstream/node/topology.c)
build/$(1)/test_fair_queue build/$(1)/test_fair_queue_load: $(call objects,$(1),$(addprefix src/upstream/fair/,contention.c fair_queue.c fair_flows.c))
$(addprefix build/$(1)/,test_control_reply test_sentinel_reply test_auth_probe_answer fuzz_control fuzz_sentinel fuzz_auth_probe): $(call objects,$(1),$(CONTROL))
build/$(1)/test_sentinel_word: $(call objects,$(1),src/run/topology/sentinel_word.c $(CONTROL))
endef
$(foreach f,$(FLAVOURS),$(eval $(call flavour,$(f))))

# What the world around weir comes to says nothing about weir: only weir's own branches guide the fuzzer.
build/fuzz/tests/sim/%.o: fuzz_CFLAGS += -fno-sanitize=fuzzer-no-link
# fuzz_session starts weir hundreds of times a second, and the sanitizer marks each byte of what it takes.
build/fuzz/src/%.o: fuzz_CFLAGS += -DDENIALS_SLOTS=64 -DREGISTRY_LIMITS_MAX=1024

-include $(foreach f,$(FLAVOURS),$(wildcard build/$(f)/src/*/*.d build/$(f)/src/*/*/*.d build/$(f)/tests/*/*.d build/$(f)/bench/*/*.d))

build/weir: build/release/weir
	@ln -f $< $@

# ---- for people ----

run: ## install what is missing, build, start weir (PORT=6380) in front of a private redis-server, UPSTREAM=host:port, SENTINEL=1: servers that fail over, or CLUSTER=3: a Redis Cluster
	@tests/tools/deps.sh run
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) build/weir
	@tests/tools/run.sh

test: ## install what is missing, then what CI runs first: check, unit, tsan, it
	@tests/tools/deps.sh test
	@tests/tools/run-tests.sh

test-long: build/clang/weir build/asan/weir build/asan/sim_redis ## a build by clang; integration tests in the other half of workers x lanes: CI runs both behind make test
	@LONG=1 tests/tools/run-it.sh

test-moves: build/asan/weir build/asan/sim_redis ## integration tests of an upstream that moves, restarts or is away: CI runs them behind make test-long
	@tests/tools/deps.sh moves
	@MOVES=1 tests/tools/run-it.sh

test-failover: build/asan/weir build/asan/sim_redis ## integration tests of a master with replicas and sentinels: CI runs them behind make test-moves (LONG=1: longer)
	@tests/tools/deps.sh moves
	@FAILOVER=1 tests/tools/run-it.sh

test-cluster: build/asan/weir build/asan/sim_redis ## integration tests of a Redis Cluster: CI runs them behind make test-failover (LONG=1: longer)
	@tests/tools/deps.sh moves
	@CLUSTER=1 tests/tools/run-it.sh

unit: $(UNIT_BINS) ## unit tests under ASan and UBSan
	@tests/tools/run-units.sh $(UNIT_BINS)

it: build/asan/weir build/asan/sim_redis ## integration tests against build/asan/weir (or WEIR=path; K=expression picks tests, SLOW=30 tells which cost most)
	@tests/tools/run-it.sh

asan: build/asan/weir ## build weir with ASan and UBSan

tsan: build/tsan/weir threads ## build weir with TSan, and run the thread tests under it

threads: $(THREAD_BINS) # the thread tests under TSan
	@tests/tools/run-units.sh $(THREAD_BINS)

analyze: ## clang's analyzer over all sources: slow, and not always right
	@printf '%s\n' $(SRC) | xargs -P2 -I{} clang-tidy --quiet --checks='-*,clang-analyzer-*' \
	    --warnings-as-errors='-*' {} -- $(BASE) 2>/dev/null

fuzz: $(FUZZ_BINS) ## run every fuzzer for T=60 seconds
	@tests/tools/run-fuzz.sh $(T) $(FUZZ_BINS)

hunt: $(UNIT_BINS) build/asan/weir $(FUZZ_BINS) ## look for what nobody thought of: HUNT=20 times as many random rounds, and every fuzzer for T=60 seconds
	@HUNT=$(or $(HUNT),20) tests/tools/run-units.sh $(UNIT_BINS)
	@HUNT=$(or $(HUNT),20) K="$(or $(K),scripts or mixed or random or walks or anywhere)" tests/tools/run-it.sh
	@tests/tools/run-fuzz.sh $(T) $(FUZZ_BINS)

sim-seeds: build/asan/sim # the seeds that are simulated each time
	@tests/tools/run-sim.sh

sim: build/asan/sim build/release/sim ## simulate weir, its clients and Redis: SEED=n STEPS=m repeats a run, T=60 hunts with new seeds
	@tests/tools/run-sim.sh $(if $(SEED),$(SEED) $(or $(STEPS),10000),$(T))

house: build/cov/weir ## how large weir is beside its budgets, and what a GET and a MULTI pass
	@tests/tools/house $<

sim-coverage: build/cov/sim ## what the simulator alone reaches of front, upstream and quota (COVERAGE="--seeds 2000 --steps 5000")
	@tests/tools/sim-coverage $(COVERAGE)

mutations: build/release/sim ## does the simulator find things? Mutations of weir (MUTATIONS="name ..."), T=600 seconds of CPU each
	@tests/tools/mutations --seconds $(T) $(MUTATIONS)

bench: ## install what is missing, then weir beside Redis, nutcracker and haproxy in all cells (about an hour; BENCH=options)
	@bench/deps.sh
	@$(MAKE) --no-print-directory build/weir build/release/drive build/release/micro
	@/usr/bin/python3 bench/bench.py $(BENCH)

bench-quick: ## the same in under 5 minutes: the cells that have a figure to reach
	@$(MAKE) --no-print-directory bench BENCH="--quick $(BENCH)"

bench-limit: build/weir build/release/drive ## LIMIT FUNNEL beside the same decision by EVALSHA on Redis
	@/usr/bin/python3 bench/limit.py $(BENCH)

bench-lend: build/weir ## scripts and transactions beside another build, WEIR_BEFORE=path of its weir
	@/usr/bin/python3 bench/lend.py $(BENCH)

bench-reads: build/weir ## CPU of the dearest of three servers with reads = replicas, beside one alone (about 2 min; BENCH=options)
	@/usr/bin/python3 bench/reads.py $(BENCH)

bench-cluster: build/weir build/release/drive ## a Redis Cluster behind weir beside PREDIXY=path and one server (about 2 min; BENCH=options)
	@/usr/bin/python3 bench/cluster.py $(BENCH)

bench-micro: build/release/micro ## single steps in instructions and nanoseconds, beside the committed figures
	@/usr/bin/python3 bench/micro.py $(BENCH)

bench-figures: ## the figures that weir is to reach, in one table: asked, measured, ok or missed (about 10 min; BENCH=options)
	@bench/deps.sh
	@$(MAKE) --no-print-directory build/weir build/release/drive
	@/usr/bin/python3 bench/figures.py $(BENCH)

bench-tenants: build/weir build/release/drive ## two tenants of one Redis, one with 100 x the connections (BENCH=options)
	@/usr/bin/python3 bench/tenants.py $(BENCH)

bench-share: build/weir build/release/drive ## many tenants that want all of Redis, several weirs at once: fair-share on beside off (BENCH=options)
	@/usr/bin/python3 bench/share.py $(BENCH)

bench-dear: build/weir build/release/drive ## a tenant with dear commands beside one that pipelines GETs: fair-share on beside off (BENCH=options)
	@/usr/bin/python3 bench/dear.py $(BENCH)

bench-operators: build/weir ## how long clients wait while an operator works, with 1,000 policies and 10,000 clients (BENCH=options)
	@/usr/bin/python3 bench/operators.py $(BENCH)

bench-fairness: build/weir build/release/drive ## how long ordinary clients wait beside difficult ones, and what memory does (about 3 min; BENCH=options of fairness.py)
	@/usr/bin/python3 bench/fairness.py $(BENCH)
	@/usr/bin/python3 bench/memory.py

soak: build/asan/weir ## the crossing test with a fault every second for T=60 seconds (LANES=private, WEIR=path)
	@WEIR=$(or $(WEIR),build/asan/weir) /usr/bin/python3 tests/tools/soak.py $(T) --lanes $(or $(LANES),shared)

conformance: build/weir ## the server's own test suite through weir: REDIS_SRC=its sources (REDIS_SERVER=path; UNIT=unit/multi picks units)
	@tests/tools/conformance.py $(UNIT)

versions: build/asan/weir build/asan/sim_redis build/weir ## REDIS="server ..." [REDIS_SRC="sources ..."]: all tests that depend on the server, for each (ONLY=it, audit or conformance)
	@tests/tools/run-versions.py $(or $(REDIS),$(error REDIS="path ...": the servers)) $(if $(REDIS_SRC),--source $(REDIS_SRC)) $(addprefix --stage ,$(ONLY))

CHECKS = check-layers check-keys check-metrics check-mutations check-man check-headers check-clang check-lint check-docs check-prose
check: $(CHECKS) ## includes, configuration keys, metrics, headers, clang's warnings, lint, docs

check-layers: # no include points up a layer, or closes a circle in its folder
	@tests/tools/check-layers

check-keys: # code, docs and sample configuration name the same keys
	@tests/tools/key-tables
	@tests/tools/check-keys

check-metrics: # code and docs name the same metrics
	@tests/tools/check-metrics

check-mutations: # the pattern of each mutation is in src exactly once
	@tests/tools/mutations --check

check-docs: build/asan/weir # links, files, examples, transcripts and alerts of the docs
	@tests/tools/check-docs

check-prose: # words, sentences and lines of comments and docs: -v names all that is counted
	@tests/tools/check-prose

check-man: # the manual pages are good, and name everything
	@tests/tools/check-man

check-headers: # every header compiles alone
	@CFLAGS='$(BASE)' tests/tools/check-headers

check-clang: $(patsubst %,build/clang/%.seen,$(UNITS) $(SIM) $(MODEL) $(FUZZERS) $(SESSION)) # the same warnings from clang, of what only the tests need

check-lint: $(FOLDERS:%=build/clang/%/tidy) # clang's warnings and clang-tidy, see .clang-tidy

# What only the tests need is looked at, and not built.
build/clang/%.seen: % Makefile
	@mkdir -p $(@D)
	@clang $(BASE) $(if $(filter tests/fuzz/%,$<),-I.) $(if $(findstring /sim/,$<),-I. $(shell pkg-config --cflags $(LUA))) -MMD -MP -MF $(@:.seen=.d) -MT $@ -fsyntax-only $<
	@touch $@

# Only what was compiled anew is looked at anew: clang-tidy tells no dependencies, so the objects of build/asan stand for
# them. One clang-tidy takes a folder: its start costs as much as a file.
sources_of = $(foreach source,$(SRC),$(if $(filter $(1)/,$(dir $(source))),$(source)))
define tidy
build/clang/$(1)/tidy: $(call objects,asan,$(call sources_of,$(1))) .clang-tidy
	@mkdir -p $$(@D)
	@clang-tidy --quiet $$(if $$(filter .clang-tidy,$$?),$(call sources_of,$(1)),$$(patsubst build/asan/%.o,%.c,$$?)) \
	    -- $(BASE) $(clang_CFLAGS) 2>$$@.log || { cat $$@.log; exit 1; }
	@touch $$@
endef
$(foreach f,$(FOLDERS),$(eval $(call tidy,$(f))))

list-checks: # for tests/tools/run-tests.sh
	@echo $(CHECKS)

ROOT = $(DESTDIR)$(PREFIX)
MAN  = $(wildcard docs/man/*.[1-9])

install: build/weir ## install under PREFIX=/usr/local (and DESTDIR); a /etc/weir/weir.conf that is there stays
	install -D -m 755 build/weir $(ROOT)/bin/weir
	install -d $(ROOT)/share/doc/weir $(ROOT)/lib/systemd/system $(DESTDIR)$(SYSCONFDIR)/weir
	for page in README.md CHANGELOG.md $(wildcard docs/*.md); do \
	    sed -e 's|](docs/|](|g' -e 's|](\.\./|](|g' -e 's|](LICENSE)|](copyright)|g' $$page >$(ROOT)/share/doc/weir/$${page##*/} || exit; done
	chmod 644 $(ROOT)/share/doc/weir/*.md
	install -D -m 644 -t $(ROOT)/share/doc/weir/conf conf/weir.conf conf/weir.logrotate
	cp -r docs/grafana docs/images docs/prometheus $(ROOT)/share/doc/weir
	install -m 644 LICENSE $(ROOT)/share/doc/weir/copyright
	for page in $(MAN); do install -D -m 644 $$page $(ROOT)/share/man/man$${page##*.}/$${page##*/} || exit; done
	install -D -m 644 conf/bash-completion/weir $(ROOT)/share/bash-completion/completions/weir
	install -D -m 644 conf/sysusers.d/weir.conf $(ROOT)/lib/sysusers.d/weir.conf
	install -D -m 644 conf/weir.logrotate $(DESTDIR)$(SYSCONFDIR)/logrotate.d/weir
	install -m 644 conf/systemd/weir.socket $(ROOT)/lib/systemd/system
	sed -e 's|/usr/bin/weir|$(PREFIX)/bin/weir|' -e 's|/etc/weir|$(SYSCONFDIR)/weir|' conf/systemd/weir.service \
	    >$(ROOT)/lib/systemd/system/weir.service
	chmod 644 $(ROOT)/lib/systemd/system/weir.service
	[ -e $(DESTDIR)$(SYSCONFDIR)/weir/weir.conf ] || install -m 644 conf/weir.conf $(DESTDIR)$(SYSCONFDIR)/weir/weir.conf

DEB = build/weir_$(subst -dev,~dev,$(VERSION))_$(shell dpkg --print-architecture).deb

deb: build/weir ## a Debian package, build/weir_VERSION_ARCHITECTURE.deb
	@rm -rf $(DEB).root
	@$(MAKE) --no-print-directory -s install DESTDIR=$(CURDIR)/$(DEB).root PREFIX=/usr SYSCONFDIR=/etc
	@conf/debian/make-deb $(VERSION) $(DEB)

format: ## clang-format all C files in place
	clang-format -i $(SRC) $(HEADERS) $(wildcard tests/unit/*.[ch] tests/fuzz/*.[ch] tests/sim/*.[ch] bench/*/*.[ch])

clean: ## remove build/
	rm -rf build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: all run test test-long test-moves test-failover test-cluster unit it asan tsan threads analyze fuzz hunt sim sim-seeds sim-coverage house mutations bench bench-quick bench-limit bench-lend bench-reads bench-cluster bench-micro bench-figures bench-tenants bench-share bench-dear bench-operators bench-fairness soak conformance versions check $(CHECKS) list-checks install deb format clean help
