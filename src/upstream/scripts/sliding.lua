-- An algorithm (decide.lua): an exact log of the last calls, at one or several rates. SLIDING.
--
-- Numbers: cost, R, then R times count, period_us. Result: how many calls fit, which is the number
-- granted if the algorithm decides alone. Then for each rate three integers: the units in the
-- window before the calls; the us until another call would pass after the granted calls (0: now,
-- -1: never); the us until the window would be empty. A peek charges nothing, so the times are of
-- the present state. If the key holds another value: the text of WRONGTYPE and 3 R zeros.
--
-- Stored: a sorted set. All units granted at once are one entry, with their unix time in us as
-- score, named total+units. The total is the number of units counted in this key so far, including
-- the entry's own units. The total has 16 digits, so that entries of one moment are in order. The
-- usage of a window is the newest total less the total where the window begins: two look-ups,
-- whatever the usage. A unit at t counts at times in [t, t + period), in the windows of all rates,
-- whatever the rates of its call were. Only a call that counts adds or prunes entries, and prunes
-- at most PRUNED entries. Entries of the future were left by a clock that went back. Entries of the
-- future become one entry of now at once. Otherwise the key would be locked.
--
-- Refused calls that count are an entry like granted calls, of at most as many units as the largest
-- count. Given-back units are taken from the newest entries of this call's longest window.
--
-- The key lives as long as the longest period of a granted call needs the key: no call shortens
-- that time. While the key lives beyond this call's longest period, no entry counts as expired.
-- Entries older than the newest KEPT entries are removed even then, for no rate counts more units.
--
-- A penalty (penalty.lua) is one more member behind the entries, and says until when the log is
-- needed. That member is not counted: look-ups from the end begin `top` members before the end.
--
-- In the old form of the set entries have no totals, and each unit is an entry, named
-- time:sequence. A set of the old form is read as it is. The first call that writes turns the
-- longest window into one entry with the time of the newest unit, so no unit leaves too early.

local function sliding(at)
  local PRUNED, KEPT, AT_ONCE = 100, 10000, 1000

  local now_text = format('%d', now)

  local cost, R = tonumber(argv[at]), tonumber(argv[at + 1])
  local count, period, border, longest, largest = {}, {}, {}, 1, 0
  for r = 1, R do
    count[r], period[r] = tonumber(argv[at + 2 * r]), tonumber(argv[at + 2 * r + 1])
    border[r] = format('%d', now - period[r]) -- scores beyond this are in the window
    if period[r] > period[longest] then longest = r end
    largest = math.max(largest, count[r])
  end
  local longest_ms = (period[longest] + (-period[longest]) % 1000) / 1000

  -- State of the key at hand. `mark`: the member with the penalty's record; nil: no penalty.
  local mark, top, log
  local part

  -- Returns total and units of an entry's name. nil: another client has written the entry, and weir
  -- does not guard against the effects.
  local function read(name)
    local total, units = string.match(name or '', '^(%d+)%+(%d+)$')
    return tonumber(total), tonumber(units)
  end

  -- Returns the total at the beginning of the window that excludes scores up to `limit`, and
  -- whether an entry with a score up to `limit` is left.
  local function total_until(key, limit)
    local total = read(redis.call('ZREVRANGEBYSCORE', key, limit, '-inf', 'LIMIT', 0, 1)[1])
    if total then return total, true end
    local first, units = read(redis.call('ZRANGE', key, 0, 0)[1])
    return (first or 0) - (units or 0), false
  end

  -- Returns the time of the entry with unit number `total`. That unit is the `nth` of the `held`
  -- units with scores beyond `limit`.
  local function time_of_total(key, limit, total, nth, held)
    local low = redis.call('ZCOUNT', key, '-inf', limit)
    local high = low
    if nth > 1 then
      local size = redis.call('ZCARD', key) - top
      local guess = (nth - 1) * (size - low) / held -- right at once where all entries are as large
      high = math.min(low + nth, size) - 1
      local middle = math.min(low + (guess - guess % 1), high)
      while low < high do
        local last, units = read(redis.call('ZRANGE', key, middle, middle)[1])
        if not last or last < total then
          low = middle + 1
        elseif last - units < total then
          low, high = middle, middle
        else
          high = middle - 1
        end
        middle = (low + high - (low + high) % 2) / 2
      end
    end
    local time = tonumber(redis.call('ZRANGE', key, low, low, 'WITHSCORES')[2])
    return time and time < math.huge and time or now
  end

  -- Adds an entry at `time`. Returns nil, or an error, which only the first write of a script can
  -- have.
  local function add(key, time, total, units)
    local done = pcall('ZADD', key, time, format('%016d+%d', total, units))
    if type(done) == 'table' then return failure(done) end
  end

  -- Adds units at now, behind a total of `total`. `future` more units replace the entries of the
  -- future.
  local function store_more(key, total, units, future, may_prune)
    local lives_ms = mark and penalties().needs(log) or redis.call('PTTL', key)
    local wrong = add(key, now_text, total + units, units + future)
    if wrong then return wrong end
    local over = redis.call('ZCARD', key) - top - KEPT
    if may_prune and lives_ms <= longest_ms then
      over = math.max(over, redis.call('ZCOUNT', key, '-inf', border[longest]))
    end
    if over > 0 then redis.call('ZREMRANGEBYRANK', key, 0, math.min(over, PRUNED) - 1) end
    if future > 0 then redis.call('ZREMRANGEBYSCORE', key, '(' .. now_text, '(+inf') end
    if lives_ms < longest_ms then redis.call('PEXPIRE', key, format('%d', longest_ms)) end
    log = now + math.max(lives_ms, longest_ms) * 1000
  end

  -- Like store_more, for a set without totals. `kept` units up to `newest` are in the longest
  -- window.
  local function store_anew(key, newest, kept, units)
    local lives_ms = mark and penalties().needs(log) or redis.call('PTTL', key)
    if lives_ms > longest_ms then kept = redis.call('ZCARD', key) - top end
    local done = pcall('UNLINK', key)
    if type(done) == 'table' then return failure(done) end
    if kept > 0 then add(key, format('%d', math.min(newest, now)), kept, kept) end
    if units > 0 then add(key, now_text, kept + units, units) end
    redis.call('PEXPIRE', key, format('%d', math.max(lives_ms, longest_ms)))
    mark, top, log = nil, 0, now + math.max(lives_ms, longest_ms) * 1000
  end

  -- Gives units back. Returns the time of the newest entry left, nil if no entry is left; or nil
  -- and an error.
  local function give_back(key, units)
    local is_over = false
    while units > 0 and not is_over do
      local entries = redis.call('ZREVRANGE', key, top, top + math.min(units, AT_ONCE) - 1, 'WITHSCORES')
      local gone, kept = 0, nil
      is_over = #entries == 0
      for e = 1, #entries, 2 do
        local total, size = read(entries[e])
        if units == 0 or not total or tonumber(entries[e + 1]) <= now - period[longest] then
          is_over = true
          break
        end
        if size > units then kept = { entries[e + 1], total - units, size - units } end
        gone, units = gone + 1, math.max(0, units - size)
      end
      local wrong = kept and add(key, kept[1], kept[2], kept[3])
      if wrong then return nil, wrong end
      local done = gone > 0 and pcall('ZREMRANGEBYRANK', key, -gone - top, -1 - top)
      if type(done) == 'table' then return nil, failure(done) end
    end
    return tonumber(redis.call('ZREVRANGE', key, top, top, 'WITHSCORES')[2])
  end

  -- State of the key at hand.
  local total, is_old, newest, future, may_prune, adds, charged, returned, last_at
  local used, from, retry = {}, {}, {}

  local function look(key, _, n)
    local last = pcall('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    if last.err then return nil, string.sub(last.err, 1, 9) ~= 'WRONGTYPE' and failure(last) end
    mark, top, log = nil, 0, nil
    if last[1] and string.byte(last[1]) == 112 then
      mark, top = last[1], 1
      part.record, log = penalties().read(mark)
      if not log then return nil end
      last = redis.call('ZREVRANGE', key, 1, 1, 'WITHSCORES')
    end
    total = read(last[1])
    is_old = last[1] and not total
    if is_old and not string.match(last[1], '^%d+:%d+$') then return nil end
    newest, future, may_prune = tonumber(last[2]), 0, false
    if newest and newest > now then
      future = is_old and redis.call('ZCOUNT', key, '(' .. now_text, '(+inf') or total - total_until(key, now_text)
    end
    for r = 1, R do
      used[r] = 0
      if newest and newest > now - period[r] then
        if is_old then
          used[r] = redis.call('ZCOUNT', key, '(' .. border[r], '(+inf')
        else
          local has_more
          from[r], has_more = total_until(key, border[r])
          used[r] = total - from[r]
          if r == longest then may_prune = has_more end
        end
      elseif r == longest then
        may_prune = newest
      end
      local passing = (count[r] - used[r]) / cost
      if not is_forced then n = math.max(0, math.min(n, passing - passing % 1)) end
    end
    return n
  end

  local function charge(n, granted, key)
    charged, returned = 0, 0
    if not peek then
      charged, returned = granted * math.max(0, cost), granted * math.max(0, -cost)
      if counts_all then charged = charged + (n - granted) * math.min(cost, largest) end
    end
    adds = charged > 0 or future > 0 or is_old and cost < 0
    last_at = adds and now or newest
    for r = 1, R do
      retry[r] = 0
      local leaving = used[r] + charged + cost - count[r] -- of the oldest: then another call passes
      if cost > count[r] then
        retry[r] = -1
      elseif leaving > used[r] - future then
        retry[r] = period[r]
      elseif leaving > 0 then
        local goes
        if is_old then -- each unit is an entry
          local rank = top + used[r] - leaving
          goes = tonumber(redis.call('ZREVRANGE', key, rank, rank, 'WITHSCORES')[2]) or now
        else
          goes = time_of_total(key, border[r], from[r] + leaving, leaving, used[r])
        end
        retry[r] = goes + period[r] - now
      end
    end
    return not peek and (adds or cost < 0 and newest)
  end

  local WRITES = { 'zadd', 'zcard', 'pttl', 'pexpire', 'zremrangebyrank', 'zremrangebyscore' }
  local RARE = { 'unlink', 'zrem' }

  local function check(key)
    return denied(key, WRITES) or (is_old or mark or part.record) and denied(key, RARE) or nil
  end

  local function write(key)
    local wrong
    if adds and is_old then
      wrong = store_anew(key, newest, used[longest], charged)
    elseif adds then
      wrong = store_more(key, total or 0, charged, future, may_prune)
    end
    if not wrong and cost < 0 and newest then last_at, wrong = give_back(key, returned) end
    if wrong or not (mark or part.record) then return wrong end
    if not log then log = now + penalties().ttl(key) * 1000 end
    return penalties().mark(key, mark, part.record, log)
  end

  local function tell(granted, reply, to)
    reply[to + 1] = granted or 0
    for r = 1, R do
      local u, wait, reset = 0, 0, 0
      if granted then
        u, wait, reset = used[r], retry[r], last_at and math.max(0, last_at + period[r] - now) or 0
      end
      reply[to + 3 * r - 1], reply[to + 3 * r], reply[to + 3 * r + 1] = u, wait, reset
    end
  end

  part = { behind = at + 2 + 2 * R, width = 1 + 3 * R,
    look = look, charge = charge, check = check, write = write, tell = tell }
  return part
end
local algorithm = sliding
