/* Polls the statistics every two seconds, and writes changed values into the document. */

const isPhone = matchMedia('(max-width: 760px)').matches;
const POLL_MS = 2000, TOP = 10, LIMITS = 256, EVENTS = isPhone ? 8 : 20;

const showHeader = (s) => {
  const mode = s.draining ? 'draining' : s.mode, reloads = s.reloads;
  show('mode', mode);
  mark($('mode'), 'class', 'badge ' + mode);
  show('name', s.name);
  show('version', s.version);
  show('uptime', span(s.uptime_seconds));
  show('pid', String(s.pid));
  show('config', s.config_file || 'none');
  show('reload', reloads.last_successful ? (reloads.success ? 'OK, ' : 'none since ') + time(reloads.last_success_ms) : 'failed');
  show('workers', String(s.workers));
  show('subjects', count(s.subjects.of_connections + s.subjects.of_keys));
};

/* Shows the findings, and the worst finding also in the tab's title. */
const showFindings = ({ findings, name }) => {
  const items = findings.map(({ level, title, more, at }) => {
    const item = make('li', level), link = make('a', '', title);
    link.href = '#' + at;
    item.append(link, ' ', make('span', '', more));
    return item;
  });
  const shown = [...$('findings').children];
  items.forEach((item, i) => {
    if (!shown[i]) $('findings').append(item);
    else if (shown[i].className !== item.className || shown[i].firstChild.hash !== item.firstChild.hash) shown[i].replaceWith(item);
    else [...item.children].forEach((part, n) => write(shown[i].children[n], part.textContent));
  });
  shown.slice(items.length).forEach((item) => item.remove());
  const title = (findings[0].level === 'bad' ? findings[0].title + ' - ' : '') + (name || 'weir');
  if (document.title !== title) document.title = title;
};

const showRates = (now) => {
  for (const name of ['commands', 'refused', 'delayed', 'shadowed', 'errors', 'redis-errors'])
    show(name, rate(now[name.replace('-', '_') + '_per_second']));
  show('refused-share', `(${percent(now.commands_per_second > 0 ? now.refused_per_second / now.commands_per_second : 0)})`);
  show('commands-peak', perSecond(peak(series.commands_per_second)));
  show('bytes-in', bytes(now.bytes_in_per_second));
  show('bytes-out', bytes(now.bytes_out_per_second));
  for (const name of ['latency', 'upstream', 'overhead'])
    for (const part of ['p50', 'p99']) show(name + '-' + part, duration(now[`${name}_${part}_seconds`]));
  show('delay-p99', duration(now.delay_p99_seconds));
  show('wait-p99', duration(now.share_wait_p99_seconds));
  show('turn-p99', duration(now.loop_turn_p99_seconds));
  show('in-flight', count(now.in_flight));
  drawCharts();
};

// Returns the node's name, the address in use, and the error of each other dialled address.
const whereOf = ({ address, in_use, addresses }) =>
  address + (in_use && in_use !== address ? ', ' + in_use : '') +
  addresses.filter((one) => one.why).map((one) => '; ' + one.address + ': ' + one.why).join('');

const showConnections = ({ clients, upstream, lanes }) => {
  show('connections', count(clients.connected));
  show('max-clients', count(clients.max));
  show('turned-away', count(clients.listeners.reduce((n, l) => n + sum(l.rejected), 0)));
  show('upstream', stateOf(upstream));
  mark($('upstream'), 'class', 'state ' + (upstream.state === 'up' ? 'is-up' : upstream.up ? 'is-slow' : 'is-down'));
  show('oldest', duration(upstream.oldest_seconds));
  mark(fields.oldest, 'class', upstream.oldest_seconds >= 1 ? 'hot' : '');
  const home = upstream.nodes.find((node) => node.use === 'all' || node.use === 'slots');
  show('upstream-address', home ? whereOf(home) : upstream.address);
  show('upstream-errors', count(sum(upstream.errors)));
  show('lanes', count(sum(upstream.connections)));
  show('lanes-mode', lanes === 'private' ? 'private to each client' : 'shared by clients');
  Object.entries(upstream.connections).forEach(([name, n], i) => {
    const pair = $('lanes').children[i] || $('lanes').appendChild(make('div'));
    if (!pair.firstChild) pair.append(make('dt', '', name), make('dd'));
    write(pair.lastChild, count(n));
  });
};

const showTables = (s) => {
  $('nodes-card').hidden = s.upstream.nodes.length < 2;
  nodes.update(s.upstream.nodes.map((node) => ({ key: node.address, node })));
  limits.update(byState(s.limits.slice(0, LIMITS)).map((limit) => ({ key: limit.rule, limit })));
  rove();
  show('more-limits', s.limits.length > LIMITS ? ` ${s.limits.length - LIMITS} more limits are in the JSON.` : '');
  $('named-card').hidden = s.named_limits.length === 0;
  named.update(s.named_limits.slice(0, LIMITS).map((one) => ({ key: one.name, named: one })));
  for (const [by, table] of tops)
    table.update(s.top[by].filter((top) => top.per_second > 0).slice(0, TOP).map((top) => ({ key: JSON.stringify([top.subject, top.policy]), top })));
  classes.update(Object.entries(s.commands).map(([name, results]) => ({ key: name, name, results })));
  listeners.update(s.clients.listeners.map((listener) => ({ key: listener.listener, listener })));
  events.update(s.events.slice(0, EVENTS).map((event) => ({ key: String(event.id), event })));
};

/* ---- polling ---- */

/* `turn` numbers the polls: an answer to an earlier poll is ignored */
let isPaused = false, timer = 0, turn = 0, pid = 0;
const say = (text, state) => {
  show('live', text);
  mark(fields.live, 'class', 'live ' + state);
};

const ask = async () => {
  const answer = await fetch('/api/v1/stats?history=' + last, { cache: 'no-store', signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
};

const poll = async () => {
  const mine = ++turn;
  clearTimeout(timer);
  try {
    let stats = await ask();
    /* another process has answered: start again at the first point of its history */
    if (mine === turn && (stats.pid !== pid || stats.history.last < last)) {
      forget();
      if (pid !== 0) stats = await ask();
      pid = stats.pid;
    }
    if (isPaused || mine !== turn) return;
    remember(stats);
    showHeader(stats);
    showFindings(stats);
    showRates(stats.now);
    showConnections(stats);
    showTables(stats);
    for (const part of document.querySelectorAll('main, .facts')) part.hidden = false;
    say('live', 'on');
  } catch (error) {
    if (isPaused || mine !== turn) return;
    say('weir does not answer', 'lost');
    const more = seenMs ? 'the figures below are from ' + time(seenMs) : 'no answer since this page was opened';
    showFindings({ findings: [{ level: 'bad', title: 'weir does not answer', more, at: 'process' }], name: fields.name.textContent });
  }
  if (!isPaused && !document.hidden) timer = setTimeout(poll, POLL_MS);
};

const pause = $('pause');
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  write(pause, isPaused ? 'Resume' : 'Pause');
  clearTimeout(timer);
  if (isPaused) say('paused at ' + time(Date.now()), '');
  else poll();
});
filter.addEventListener('input', () => filtered.forEach((table) => table.arrange()));
document.addEventListener('visibilitychange', () => { if (!document.hidden && !isPaused) poll(); });
/* On a phone rarely used cards start closed. */
if (isPhone) for (const part of document.querySelectorAll('main details.card')) part.open = false;
pause.hidden = filter.hidden = false;
say('asking weir', '');
poll();
