-- An algorithm (decide.lua): a counter for each window of time, at one or several rates. FIXED.
--
-- Its numbers and what it tells: as in sliding.lua; a key that counts in too many other windows has the text of that error.
-- After a peek the times are those of now.
--
-- Stored: "w", then for each period moment:count, joined by spaces: what is counted in the window that has this moment, in
-- us since 1970. Windows begin at multiples of their period. The moment's last digits spell the period: its ms, and in two
-- digits how many digits those are. So ...6000005 is of 60000 ms; there is one such moment in each window.
-- A call is counted in the windows of its own periods, whatever the COUNT, and in no others. A window stays until it is
-- over, MOST of them at most. One that begins after the next one was left by a clock that went back: its count goes over
-- to the present window at once, even by a call that is refused, or it would lock the key. The next one stays: a clock
-- that goes back by a moment admits nothing twice.
--
-- Windows that start with their first use have their start and their ms in place of the moment, start-ms:count, and a count
-- of their own. They begin with the first call that counts after the last one is over; one that begins later than now is
-- taken to begin now.
--
-- Before periods were spelled the moment was the window's beginning, which ends in 00; its period was that of the rate in
-- its place.

local function fixed(at)
  local MOST, COUNTED = 8, 2 ^ 53
  local FULL = 'ERR the key still counts in 8 other periods: give this one a key of its own'

  local cost, R = tonumber(argv[at]), tonumber(argv[at + 1])
  local count, period = {}, {}
  for r = 1, R do
    count[r], period[r] = tonumber(argv[at + 2 * r]), tonumber(argv[at + 2 * r + 1])
  end

  local function spelled(start, length)
    local ms = length / 1000
    local digits = #format('%d', ms)
    return start + (ms * 100 + digits - start) % 10 ^ (digits + 2)
  end

  local function period_of(moment)
    local digits = moment % 100
    return (moment - digits) / 100 % 10 ^ digits * 1000
  end

  -- What is counted where, as seen from now, whether a window was brought back, and each by its period; nil: the value is
  -- not ours.
  local function windows_of(value)
    local kept, brought, named = {}, false, {}
    if not value then return kept, brought, named end
    if string.sub(value, 1, 1) ~= 'w' then return nil end
    local place = 0
    for word in string.gmatch(string.sub(value, 2) .. ' ', '(.-) ') do
      local moment, ms, used = string.match(word, '^(%d+)%-?(%d*):(%d+)$')
      moment, ms, used, place = tonumber(moment), tonumber(ms), tonumber(used), place + 1
      if not moment then return nil end
      local length = not ms and period_of(moment)
      if ms then
        local start, own = moment, ms * 1000
        if own == 0 or named[-own] then return nil end
        if start > now then brought, start = brought or used > 0, now end
        if now < start + own then
          local window = { length = own, start = start, used = used, is_first = true }
          kept[#kept + 1], named[-own] = window, window
        end
      elseif length == 0 then
        length = period[place]
      elseif spelled(moment - moment % length, length) ~= moment then
        return nil
      end
      if length then
        local start, here = moment - moment % length, now - now % length
        if start > here + length then
          brought, start = brought or used > 0, here
        elseif start < here then
          start, used = here, 0
        end
        local window = named[length]
        if window then
          window.used = math.max(window.used, used)
        else
          window = { length = length, start = start, used = used }
          kept[#kept + 1], named[length] = window, window
        end
      end
    end
    return kept, brought, named
  end

  -- What is to be stored, "" for nothing, and for how long; nil: it is too much.
  local function value_of(windows)
    local words, longest = {}, 1000
    for _, window in ipairs(windows) do
      if window.used > 0 then
        if window.is_first then
          words[#words + 1] = format('%d-%d:%d', window.start, window.length / 1000, window.used)
        else
          words[#words + 1] = format('%d:%d', spelled(window.start, window.length), window.used)
        end
        longest = math.max(longest, window.start + window.length - now)
      end
    end
    if #words > MOST then return nil end
    if #words == 0 then return '' end
    return 'w' .. table.concat(words, ' '), format('%d', (longest + (-longest) % 1000) / 1000)
  end

  local kept, windows, asked, used, changes, new, ms -- of the key that is looked at

  local function look(_, value, n)
    local named
    kept, changes, named = windows_of(value)
    if not kept then return nil end
    windows, asked, used = {}, {}, {}
    for r = 1, R do
      local length = period[r]
      local name = from_first and -length or length
      local window = named[name]
      if not window then
        window = { length = length, start = from_first and now or now - now % length, used = 0, is_first = from_first }
        named[name] = window
      end
      if not window.is_asked then
        windows[#windows + 1], window.is_asked = window, true
      end
      asked[r], used[r] = window, window.used
      local passing = (count[r] - used[r]) / cost
      if not is_forced then n = math.max(0, math.min(n, passing - passing % 1)) end
    end
    return n
  end

  local function charge(n, granted)
    for _, window in ipairs(windows) do
      if not peek then window.used = math.max(0, math.min(window.used + granted * cost, COUNTED)) end
    end
    for r = 1, R do
      if counts_all and not peek then
        asked[r].used = math.max(asked[r].used, math.min(used[r] + n * cost, count[r]))
      end
      changes = changes or asked[r].used ~= used[r]
    end
    for _, window in ipairs(kept) do
      if not window.is_asked then windows[#windows + 1] = window end
    end
    if peek or not changes then return false end
    new, ms = value_of(windows)
    return true, not new and FULL or nil
  end

  local function write(key, value)
    return store(key, value, new, ms)
  end

  local function tell(granted, reply, to)
    reply[to + 1] = granted or 0
    for r = 1, R do
      local retry, reset = 0, 0
      if granted then
        local total, left = asked[r].used, asked[r].start + period[r] - now
        reset = total > 0 and left or 0
        if cost > count[r] then
          retry = -1
        elseif total + cost > count[r] then
          retry = left
        end
      end
      reply[to + 3 * r - 1], reply[to + 3 * r], reply[to + 3 * r + 1] = granted and used[r] or 0, retry, reset
    end
  end

  return { behind = at + 2 + 2 * R, width = 1 + 3 * R, is_text = true,
    look = look, charge = charge, write = write, tell = tell }
end
local algorithm = fixed
