-- An algorithm (decide.lua): GCRA, at one or several rates. FUNNEL, BUCKET.
--
-- Numbers: tag, R, then R times interval_ns, inc_ns, room_ns, burst_ns. Result: R integers, the
-- debt of each rate in ns before the calls. If the key holds another value, or has debts at too
-- many other rates: the text of the error and R - 1 zeros.
--
-- Stored: the tag, then RECORD bytes for each funnel, numbers with the highest byte first:
--
-- 7 bytes  the interval of one unit in ns, which identifies the funnel
-- 4 bytes  the unix time when the debt is paid (the TAT), seconds
-- 4 bytes  ns of that time
-- 4 bytes  the debt when the funnel was last charged, in steps of STEP ns, rounded up
--
-- A debt grows by calls alone. A debt larger than the stored debt was left by a clock that went
-- back. The debt is then cut to the stored debt for good, even by a refused call.
--
-- Refused calls that count fill a funnel up to its burst. Forced calls may leave a larger debt, at
-- most OWED. Borrowing calls may leave a debt above the burst, too: for borrowing calls, room is
-- larger than burst. Given-back units leave a debt of at least 0.
--
-- A rate charges the funnel of its interval alone, whatever the burst. A funnel that is new to the
-- key begins with the largest debt of the key's other funnels. Funnels with a stored debt above the
-- burst of the new funnel do not count. All funnels stay while a funnel has a debt; a key has at
-- most MOST funnels.
--
-- The old form of the value is text: the tag, then a TAT in ns for each rate, in the order of the
-- rates. The tag is in upper case if a time beyond the burst has been reserved. Funnels of the old
-- form have the interval 0, which no rate has, and are removed when their debt is paid. A reserved
-- time is kept whatever the burst.
--
-- A double holds integers up to 2^53, and ns since 1970 exceed that. Seconds are therefore
-- subtracted first.

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

  -- debt_of returns the debt of a TAT; tat_of returns the TAT of a debt, in seconds and ns.
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

  -- Reads the text form. The present debt is the largest that the funnel can have had.
  local function funnels_of_text(value)
    local funnels, is_reserved = {}, sub(value, 1, 1) ~= tag
    for word in string.gmatch(sub(value, 2) .. ' ', '(.-) ') do
      if #word > 20 or not string.match(word, '^%d+$') then return nil end
      local debt = math.min(debt_of(tonumber(sub(word, 1, -10)) or 0, sub(word, -9)), OWED)
      funnels[#funnels + 1] = { interval = 0, debt = debt, peak = steps_of(debt), fits = is_reserved }
    end
    return funnels, false
  end

  -- Returns the funnels of a value, and whether a debt was cut; nil: the value is not weir's. A
  -- digit behind the tag means the text form, because no interval begins with the byte of a digit.
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

  -- Returns the funnel of each rate: a funnel of `kept`, or a new funnel.
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

  -- Returns how many of n calls fit.
  local function grant(asked, n)
    if is_forced then return n end
    for r = 1, R do
      local passing = (room[r] - asked[r].debt) / inc[r]
      n = math.min(n, passing - passing % 1)
    end
    return math.max(0, n)
  end

  -- Charges calls to the funnels of the rates. Returns whether a debt has changed.
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

  -- Adds new charged funnels to `kept`. False: too many funnels have a debt.
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
