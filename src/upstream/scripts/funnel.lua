-- An algorithm (decide.lua): GCRA, at one or several rates. FUNNEL, BUCKET.
--
-- Its numbers: tag, R, then R times interval_ns, inc_ns, room_ns, burst_ns.
-- It tells R integers, the debt of each rate in ns before the calls; where the key holds something else, or owes at too
--   many other rates, the text of the error and R - 1 zeros.
--
-- Stored: the tag, then RECORD bytes for each funnel, numbers with the highest byte first: the interval of one unit in ns
-- (7 bytes), which is its name; the unix time when its debt is paid (its TAT), as seconds (4) and ns (4); and what it
-- owed when it was last poured into, in steps of STEP ns, rounded up (4). A debt only grows by calls: one that is larger
-- than it was then comes from a clock that went back, and is cut to it for good, even by a call that is refused.
--
-- What is refused and counts all the same fills a funnel up to its burst. What is let through by force, or borrows by a room
-- beyond the burst, may leave it with more, OWED at most; what is given back leaves it with 0 at least.
--
-- A rate pours into the funnel of its interval, whatever its burst, and into no other. One that is new to the key begins
-- with the largest debt there is of those that fit its burst. Funnels stay while any of them owes, MOST at most.
--
-- Before there were intervals the value was text: the tag, in upper case where a turn had been reserved beyond the burst,
-- and a TAT in ns for each rate in its place. Such funnels have the name 0, which is no rate's, and go when they are paid;
-- a reserved turn is kept whatever the burst.
--
-- A double holds integers up to 2^53, but ns since 1970 do not fit: seconds are subtracted first.

local RECORD, STEP = 19, 4e6

local function funnel(at)
  local MOST, OWED = 8, 2 ^ 53
  local FULL = 'ERR the key still owes at 8 other rates: give this one a key of its own'
  local sub, pack, unpack_numbers = string.sub, struct.pack, struct.unpack

  local sec, nsec = (now - now % 1e6) / 1e6, now % 1e6 * 1000
  local tag, R = argv[at], tonumber(argv[at + 1])
  local interval, inc, room, burst = {}, {}, {}, {}
  for r = 1, R do
    local first = at - 2 + 4 * r
    interval[r], inc[r] = tonumber(argv[first]), tonumber(argv[first + 1])
    room[r], burst[r] = tonumber(argv[first + 2]), tonumber(argv[first + 3])
  end

  local function steps_of(ns)
    return (ns + (-ns) % STEP) / STEP
  end

  -- The debt of a TAT, and a TAT of this debt: seconds and ns.
  local function debt_of(s, ns)
    return math.max(0, (s - sec) * 1e9 + (ns - nsec))
  end
  local function tat_of(debt)
    local ns = debt % 1e9
    local s = sec + (debt - ns) / 1e9
    ns = ns + nsec
    if ns >= 1e9 then return s + 1, ns - 1e9 end
    return s, ns
  end

  -- As text was stored. The debt that it has now is the largest it can have had.
  local function funnels_of_text(value)
    local funnels, is_reserved = {}, sub(value, 1, 1) ~= tag
    for word in string.gmatch(sub(value, 2) .. ' ', '(.-) ') do
      if #word > 20 or not string.match(word, '^%d+$') then return nil end
      local debt = math.min(debt_of(tonumber(sub(word, 1, -10)) or 0, sub(word, -9)), OWED)
      funnels[#funnels + 1] = { interval = 0, debt = debt, peak = steps_of(debt), fits = is_reserved }
    end
    return funnels, false
  end

  -- The funnels of a value, and whether a debt was cut; nil: it is not ours. No interval begins with the byte of a digit.
  local function funnels_of(value)
    if not value then return {}, false end
    if string.match(value, '^%a%d') and sub(value, 1, 1):lower() == tag then return funnels_of_text(value) end
    if sub(value, 1, 1) ~= tag or #value == 1 or (#value - 1) % RECORD ~= 0 then return nil end
    local funnels, is_cut = {}, false
    for place = 2, #value, RECORD do
      local name, s, ns, peak = unpack_numbers('>I7I4I4I4', value, place)
      local debt = debt_of(s, ns)
      if debt > peak * STEP then debt, is_cut = peak * STEP, true end
      funnels[#funnels + 1] = { interval = name, debt = debt, peak = peak }
    end
    return funnels, is_cut
  end

  local function value_of(funnels)
    local parts, longest = { tag }, 0
    for f, funnel in ipairs(funnels) do
      local s, ns = tat_of(funnel.debt)
      parts[f + 1] = pack('>I7I4I4I4', funnel.interval, s, ns, funnel.peak)
      longest = math.max(longest, funnel.debt)
    end
    return table.concat(parts), format('%d', (longest + (-longest) % 1e6) / 1e6)
  end

  -- The funnel of each rate, among those that are kept, or new.
  local function funnels_asked(kept)
    local asked, named = {}, {}
    for _, funnel in ipairs(kept) do named[funnel.interval] = funnel end
    for r = 1, R do
      local funnel = named[interval[r]] or { interval = interval[r], debt = 0, is_new = true }
      if funnel.is_new then
        local most = steps_of(burst[r])
        for _, other in ipairs(kept) do
          if other.fits or other.peak <= most then funnel.debt = math.max(funnel.debt, other.debt) end
        end
      end
      asked[r], named[interval[r]] = funnel, funnel
    end
    return asked
  end

  -- How many of n calls fit.
  local function grant(asked, n)
    if is_forced then return n end
    for r = 1, R do
      local passing = (room[r] - asked[r].debt) / inc[r]
      n = math.min(n, passing - passing % 1)
    end
    return math.max(0, n)
  end

  -- Pours calls into the funnels asked: whether a debt has changed.
  local function pour(asked, granted, refused)
    local changes = false
    for r = 1, R do
      local funnel = asked[r]
      if not funnel.before then
        funnel.before = funnel.debt
        funnel.debt = math.max(0, math.min(funnel.debt + granted * inc[r], OWED))
        funnel.granted = funnel.debt
      end
      if refused > 0 then
        funnel.debt = math.max(funnel.debt, math.min(funnel.granted + refused * inc[r], burst[r]))
      end
      changes = changes or funnel.debt ~= funnel.before
    end
    return changes
  end

  -- Funnels that were poured into join those that are kept. False: there are too many that owe.
  local function join(kept, asked)
    for r = 1, R do
      local funnel = asked[r]
      if funnel.debt ~= funnel.before then
        funnel.peak = steps_of(funnel.debt)
        if funnel.is_new then kept[#kept + 1], funnel.is_new = funnel, false end
      end
    end
    for f = #kept, 1, -1 do
      if kept[f].debt == 0 and (#kept > MOST or kept[f].interval == 0) then table.remove(kept, f) end
    end
    return #kept <= MOST
  end

  local kept, asked, is_cut -- of the key that is looked at
  local debts = {}

  local function look(_, value, n)
    kept, is_cut = funnels_of(value)
    if not kept then return nil end
    asked = funnels_asked(kept)
    for r = 1, R do debts[r] = asked[r].debt end
    return grant(asked, n)
  end

  local function charge(n, granted)
    if peek then return false end
    if not pour(asked, granted, counts_all and n - granted or 0) then return is_cut end
    return true, not join(kept, asked) and FULL or nil
  end

  local function write(key, value)
    return store(key, value, value_of(kept))
  end

  local function tell(granted, reply, to)
    for r = 1, R do reply[to + r] = granted and debts[r] or 0 end
  end

  local function retry()
    local longest = 0
    for r = 1, R do
      longest = math.max(longest, inc[r] > room[r] and math.huge or math.ceil((asked[r].debt + inc[r] - room[r]) / 1000))
    end
    return longest
  end

  return { behind = at + 2 + 4 * R, width = R, is_text = true, letter = tag,
    look = look, charge = charge, write = write, tell = tell, retry = retry }
end
