-- An algorithm (decide.lua): two counters in place of a log, at one or several rates. SLIDING
-- APPROX.
--
-- Numbers and result are as in sliding.lua. If a key counts in too many other windows, the first
-- integer is the text of an error. A peek charges nothing, so the times are of the present state.
--
-- Windows are aligned to multiples of the period. The usage of the sliding window is taken as
-- current + previous * (part of the previous window inside the sliding window), rounded up. The
-- estimate is exact if the previous calls were spread evenly, and off by at most the count of the
-- previous window.
--
-- Stored: "a", then for each period moment:current:previous, separated by spaces. The moment, in us
-- since 1970, is in the current window, and its last digits spell the period, as in fixed.lua. A
-- call counts in the windows of its own periods alone, whatever the COUNT. A window stays until the
-- window after it has ended; a key has at most MOST windows. If a clock went back, a stored window
-- may begin after the next window. That window becomes the present window at once, even by a
-- refused call. Otherwise the key would be locked. A stored window that is the next window stays as
-- it is.
--
-- In the old form of the value the moment is the window's beginning, which ends in 00. The period
-- is the period of the rate at the same position.

local function approx(at)
  local EXACT, MOST = 2 ^ 53, 8 -- and nothing counts more
  local FULL = 'ERR the key still counts in 8 other periods: give this one a key of its own'

  local cost, R = tonumber(argv[at]), tonumber(argv[at + 1])
  local count, period = {}, {}
  for r = 1, R do
    count[r], period[r] = tonumber(argv[at + 2 * r]), tonumber(argv[at + 2 * r + 1])
  end

  -- Returns a * b / c rounded up, where b <= c. Exact while a * b is exact, and otherwise never too
  -- small.
  local function ceil_share(a, b, c)
    local product = a * b
    if product <= EXACT then return (product + (-product) % c) / c end
    return math.min(a, math.ceil(a * (b / c) * (1 + 2 ^ -50)))
  end

  -- Returns a * b / c rounded down, where a <= c. Exact while a * b is exact, and otherwise never
  -- too large.
  local function floor_share(a, b, c)
    local product = a * b
    if product <= EXACT then return (product - product % c) / c end
    return math.floor(b * (a / c) * (1 - 2 ^ -50))
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

  -- Returns a stored window relative to now, and whether it was moved back.
  local function window_of(length, start, current, previous)
    local here, brought = now - now % length, false
    if start > here + length then
      start, brought = here, current + previous > 0
    elseif start < here - length then
      start, current, previous = here, 0, 0
    elseif start < here then
      start, current, previous = here, 0, current
    end
    return { length = length, start = start, current = current, previous = previous }, brought
  end

  -- Returns all windows of a value, whether a window was moved back, and the windows by their
  -- period; nil: the value is not weir's.
  local function windows_of(value)
    local kept, brought, named = {}, false, {}
    if not value then return kept, brought, named end
    if string.sub(value, 1, 1) ~= 'a' then return nil end
    local place = 0
    for word in string.gmatch(string.sub(value, 2) .. ' ', '(.-) ') do
      local moment, current, previous = string.match(word, '^(%d+):(%d+):(%d+)$')
      moment, place = tonumber(moment), place + 1
      if not moment then return nil end
      local length = period_of(moment)
      if length == 0 then
        length = period[place]
      elseif spelled(moment - moment % length, length) ~= moment then
        return nil
      end
      if length then
        local window, was_ahead = window_of(length, moment - moment % length, tonumber(current), tonumber(previous))
        local same = named[length]
        brought = brought or was_ahead
        if same then
          same.current = math.max(same.current, window.current)
          same.previous = math.max(same.previous, window.previous)
        else
          kept[#kept + 1], named[length] = window, window
        end
      end
    end
    return kept, brought, named
  end

  -- Returns the us until the window is empty.
  local function reset_of(window)
    if window.current > 0 then return window.start + 2 * window.length - now end
    if window.previous > 0 then return window.start + window.length - now end
    return 0
  end

  -- Returns what to store, "" for nothing, and for how long; nil: too many windows.
  local function value_of(windows)
    local words, longest = {}, 1000
    for _, window in ipairs(windows) do
      local reset = reset_of(window)
      if reset > 0 then
        words[#words + 1] = format('%d:%d:%d', spelled(window.start, window.length), window.current, window.previous)
        longest = math.max(longest, reset)
      end
    end
    if #words > MOST then return nil end
    if #words == 0 then return '' end
    return 'a' .. table.concat(words, ' '), format('%d', (longest + (-longest) % 1000) / 1000)
  end

  -- Returns the us from a window's beginning until at most `room` of the previous count is left.
  local function decay(previous, room, length)
    if previous <= room then return 0 end
    return length - floor_share(room, length, previous)
  end

  -- Returns the us until one more call passes.
  local function retry_of(window, most)
    local length, room = window.length, most - cost
    if room < 0 then return -1 end
    local wait = length + decay(window.current, room, length)
    if window.current <= room then wait = decay(window.previous, room - window.current, length) end
    return wait > 0 and math.max(0, window.start + wait - now) or 0
  end

  -- Returns the present usage of a sliding window.
  local function used_of(window)
    return window.current + ceil_share(window.previous, window.length - math.max(0, now - window.start), window.length)
  end

  -- Counts units, or gives units back, first those of the present window.
  local function add(window, units)
    local was_current, was_previous = window.current, window.previous
    local current = math.min(was_current + units, EXACT)
    if current < 0 then window.previous = math.max(0, was_previous + current) end
    window.current = math.max(0, current)
    window.changes = window.changes or window.current ~= was_current or window.previous ~= was_previous
  end

  local kept, windows, asked, used, changes, new, ms -- of the key that is looked at

  local function look(_, value, n)
    local named
    kept, changes, named = windows_of(value)
    if not kept then return nil end
    windows, asked, used, new = {}, {}, {}, nil
    for r = 1, R do
      local length = period[r]
      local window = named[length] or window_of(length, now - now % length, 0, 0)
      named[length] = window
      if not window.is_asked then
        windows[#windows + 1], window.is_asked = window, true
      end
      asked[r], used[r] = window, used_of(window)
      local passing = (count[r] - used[r]) / cost
      if not is_forced then n = math.max(0, math.min(n, passing - passing % 1)) end
    end
    return n
  end

  local function charge(n, granted)
    for _, window in ipairs(windows) do
      if not peek then add(window, granted * cost) end
    end
    for r = 1, R do
      if counts_all and not peek then
        add(asked[r], math.max(0, math.min(used[r] + n * cost, count[r]) - used_of(asked[r])))
      end
      changes = changes or asked[r].changes
      if cost < 0 and not peek and used_of(asked[r]) > 0 then
        -- Only a part of the units that the previous window gave back was in use.
        used[r] = used_of(asked[r]) - granted * cost
      end
    end
    for _, window in ipairs(kept) do
      if not window.is_asked then windows[#windows + 1] = window end
    end
    if peek or not changes then return false end
    new, ms = value_of(windows)
    return true, not new and FULL or nil
  end

  local function write(key, value)
    if not new then new, ms = value_of(windows) end -- only a penalty has changed
    return store(key, value, new, ms)
  end

  local function tell(granted, reply, to)
    reply[to + 1] = granted or 0
    for r = 1, R do
      local u, retry, reset = 0, 0, 0
      if granted then u, retry, reset = used[r], retry_of(asked[r], count[r]), reset_of(asked[r]) end
      reply[to + 3 * r - 1], reply[to + 3 * r], reply[to + 3 * r + 1] = u, retry, reset
    end
  end

  return { behind = at + 2 + 2 * R, width = 1 + 3 * R, is_text = true, letter = 'a',
    look = look, charge = charge, write = write, tell = tell }
end
local algorithm = approx
