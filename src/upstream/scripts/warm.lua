-- An algorithm (decide.lua): a limiter that is cold after rest and lends to the next call, as
-- Guava's with a warm-up. BUCKET with BORROW and WARMUP.
--
-- Numbers, in ns: the interval of one unit, which together with the warm-up identifies the record;
-- the time that one call takes by that interval; the largest debt with which a call still passes;
-- the warm-up. Result: two integers, the debt and the rest before the calls, both in ns.
--
-- The rest is the time without a debt, less the time that calls have taken since. The rest is at
-- most the warm-up, which is also the first value of the rest. A call that takes t takes t from the
-- rest too, as far as the rest reaches. Each ns of the rest beyond half of the warm-up adds more
-- than 1 ns to the debt, up to 3 ns at full rest. The price grows along a straight line. Taking all
-- of a rest r thus adds 2 (r - w/2)^2 / w besides, where w is the warm-up. A call adds the
-- difference between the rests before and after, rounded up to whole ns for all calls that come
-- together.
--
-- Stored: "g", then RECORD bytes for each record, numbers with the highest byte first:
--
-- 7 bytes  the interval, in ns
-- 6 bytes  the warm-up, in ns
-- 7 bytes  the unix time of the write, in us
-- 7 bytes  the debt at that time, in ns
-- 6 bytes  the rest at that time, in ns
--
-- A record that was written later than now was left by a clock that went back: its debt and rest
-- stay as written, for good. A record that is new to the key begins at full rest, with the largest
-- debt of the key. A record stays until its debt is 0 and its rest is full; a key has at most MOST
-- records.

local function warm(at)
  local RECORD, MOST = 33, 8
  local FULL = 'ERR the key still owes at 8 other rates: give this one a key of its own'
  local LONGEST = 2 ^ 53 / 1000 -- us: what has passed is no longer, or all is paid anyhow
  local sub, pack, unpack_numbers = string.sub, struct.pack, struct.unpack
  local interval, inc = tonumber(argv[at]), tonumber(argv[at + 1])
  local most, warmup = tonumber(argv[at + 2]), tonumber(argv[at + 3])

  -- Returns a * b / (2 * warmup), rounded up, where a <= warmup <= 2^42 and b <= 2 * warmup. Takes
  -- the bytes of `a` one after the other.
  local function share(a, b)
    local quotient, rest = 0, 0
    for shift = 40, 0, -8 do
      local byte = (a - a % 2 ^ shift) / 2 ^ shift
      a = a % 2 ^ shift
      rest = rest * 256 + byte * b
      quotient = quotient * 256 + (rest - rest % (2 * warmup)) / (2 * warmup)
      rest = rest % (2 * warmup)
    end
    return rest > 0 and quotient + 1 or quotient
  end

  -- Returns the debt that a call adds when it takes `taken` from this rest.
  local function price(rest, taken)
    local before = math.max(0, 2 * rest - warmup)
    local after = math.max(0, 2 * math.max(0, rest - taken) - warmup)
    return taken + share(before - after, before + after)
  end

  local function records_of(value)
    local records, is_cut = {}, false
    if not value then return records, is_cut end
    if sub(value, 1, 1) ~= 'g' or #value == 1 or (#value - 1) % RECORD ~= 0 then return nil end
    for place = 2, #value, RECORD do
      local step, long, written, debt, rest = unpack_numbers('>I7I6I7I7I6', value, place)
      local passed = now - written
      if passed < 0 then passed, is_cut = 0, true end
      passed = math.min(passed, LONGEST) * 1000
      records[#records + 1] = { interval = step, warmup = long, debt = math.max(0, debt - passed),
        rest = math.min(long, rest + math.max(0, passed - debt)) }
    end
    return records, is_cut
  end

  local function value_of(records)
    local parts, longest = { 'g' }, 0
    for _, record in ipairs(records) do
      local left = record.debt + record.warmup - record.rest
      if left > 0 then
        parts[#parts + 1] = pack('>I7I6I7I7I6', record.interval, record.warmup, now, record.debt, record.rest)
        longest = math.max(longest, left)
      end
    end
    if #parts - 1 > MOST then return nil end
    if #parts == 1 then return '' end
    return table.concat(parts), format('%d', (longest + (-longest) % 1e6) / 1e6)
  end

  local kept, asked, is_cut, debt, rest, new, ms -- of the key that is looked at

  -- Returns how many of n calls pass. A call passes if the debts of earlier calls leave room.
  local function passing(n)
    local room = most - debt
    if room < 0 then return 0 end
    -- Bounds of the number of calls before the last call that passes.
    local low, high = 0, math.min(n - 1, (room - room % inc) / inc)
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if price(rest, middle * inc) <= room then low = middle else high = middle - 1 end
    end
    return low + 1
  end

  local function look(_, value, n)
    kept, is_cut = records_of(value)
    if not kept then return nil end
    asked, debt, new = nil, 0, nil
    for _, record in ipairs(kept) do
      if record.interval == interval and record.warmup == warmup then asked = record end
      debt = math.max(debt, record.debt)
    end
    if not asked then
      asked = { interval = interval, warmup = warmup, debt = debt, rest = warmup, is_new = true }
    end
    debt, rest = asked.debt, asked.rest
    if inc == 0 then return n end
    return passing(n)
  end

  local function charge(_, granted)
    local taken = granted * inc
    if peek or taken == 0 and not is_cut then return false end
    if taken > 0 then
      asked.debt, asked.rest = debt + price(rest, taken), math.max(0, rest - taken)
      if asked.is_new then kept[#kept + 1] = asked end
    end
    new, ms = value_of(kept)
    return true, not new and FULL or nil
  end

  local function write(key, value)
    if not new then new, ms = value_of(kept) end -- only a penalty has changed
    return store(key, value, new, ms)
  end

  local function tell(granted, reply, to)
    reply[to + 1], reply[to + 2] = granted and debt or 0, granted and rest or 0
  end

  return { behind = at + 4, width = 2, is_text = true, letter = 'g', look = look, charge = charge, write = write, tell = tell }
end
local algorithm = warm
