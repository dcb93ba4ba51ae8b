-- An algorithm (decide.lua): a counter for each window of time, at one or several rates. FIXED.
--
-- Numbers and result are as in sliding.lua. If a key counts in too many other windows, the first
-- integer is the text of an error. A peek charges nothing, so the times are of the present state.
--
-- Stored: "w", then for each period moment:count, separated by spaces: the count of the window that
-- contains this moment, in us since 1970. Windows begin at multiples of their period. The moment's
-- last digits spell the period: its ms, then the number of digits of the ms, in two digits. A
-- moment ...6000005 has the period 60000 ms, and each window contains one such moment.
--
-- A call counts in the windows of its own periods alone, whatever the COUNT. A window stays until
-- it ends; a key has at most MOST windows. If a clock went back, a stored window may begin after
-- the next window. The count of that window moves to the present window at once, even by a refused
-- call. Otherwise the key would be locked. A stored window that is the next window stays, so a
-- clock that goes back by a moment admits nothing twice.
--
-- Windows that start with their first use have their start and their ms instead of the moment,
-- start-ms:count, and counts of their own. A window of this kind begins with the first counted call
-- after the last window of this kind has ended. A window of this kind that begins later than now
-- counts as beginning now.
--
-- Windows of the calendar are named by their kind (d, w or m for day, week and month), their start
-- and their length in s: letter start-length:count. Each time zone thus has windows of its own, and
-- this script needs no time zones. Instead of a period ARGV has the letter and the starts of five
-- windows, in s since 1970. By weir's clock the second window is the present window. By Redis'
-- clock any of the first three may be the present window. A stored window that begins at the end of
-- the next window, or later, was left by a clock that went back.
--
-- In the old form of the value the moment is the window's beginning, which ends in 00. The period
-- is the period of the rate at the same position.

local function fixed(at)
  local MOST, COUNTED = 8, 2 ^ 53
  local FULL = 'ERR the key still counts in 8 other periods: give this one a key of its own'

  local FAR = 'ERR the clocks of weir and Redis are too far apart for the calendar'

  local cost, R = tonumber(argv[at]), tonumber(argv[at + 1])
  local count, period = {}, {} -- a period of the calendar is its letter
  local present, is_far = {}, false -- by letter

  -- Returns the present window, with its end and the end of the next window.
  local function present_of(begins)
    local starts = {}
    for start in string.gmatch(begins, '%-?%d+') do starts[#starts + 1] = start * 1e6 end
    for i = 1, #starts - 2 do
      if starts[i] <= now and now < starts[i + 1] then
        return { start = starts[i], length = starts[i + 1] - starts[i], over = starts[i + 1], next_over = starts[i + 2] }
      end
    end
    is_far = true
  end

  for r = 1, R do
    local word = argv[at + 2 * r + 1]
    count[r], period[r] = tonumber(argv[at + 2 * r]), tonumber(word)
    if not period[r] then
      period[r] = string.sub(word, 1, 1)
      present[period[r]] = present_of(word)
    end
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

  -- Returns a window of the calendar, relative to now; nil: the window has ended. Second result:
  -- whether the window was moved back. Third result: whether calls of this request count in the
  -- window.
  local function calendar_window(letter, start, length, used)
    local here, is_late = present[letter], false
    if here and start >= here.next_over then
      start, length, is_late = here.start, here.length, used > 0
    end
    local over = start + length
    if over <= now then return nil end
    local is_named = here and (start == here.start and over == here.over or start == here.over and over == here.next_over)
    return { letter = letter, start = start, length = length, used = used }, is_late, is_named
  end

  -- Returns the windows of a value, relative to now; whether a window was moved back; the windows
  -- by their period. nil: the value is not weir's.
  local function windows_of(value)
    local kept, brought, named = {}, false, {}
    if not value then return kept, brought, named end
    if string.sub(value, 1, 1) ~= 'w' then return nil end
    local place = 0
    for word in string.gmatch(string.sub(value, 2) .. ' ', '(.-) ') do
      local letter, moment, ms, used = string.match(word, '^([dwm]?)(%d+)%-?(%d*):(%d+)$')
      moment, ms, used, place = tonumber(moment), tonumber(ms), tonumber(used), place + 1
      if not moment or ms == 0 or letter ~= '' and not ms then return nil end
      local length = not ms and period_of(moment)
      if letter ~= '' then
        local window, is_late, is_named = calendar_window(letter, moment * 1e6, ms * 1e6, used)
        if is_named and named[letter] then
          named[letter].used = math.max(named[letter].used, used)
        elseif window then
          kept[#kept + 1] = window
          if is_named then named[letter] = window end
        end
        brought = brought or is_late
      elseif ms then
        local start, own = moment, ms * 1000
        if named[-own] then return nil end
        if start > now then brought, start = brought or used > 0, now end
        if now < start + own then
          local window = { length = own, start = start, used = used, is_first = true }
          kept[#kept + 1], named[-own] = window, window
        end
      elseif length == 0 then
        length = tonumber(period[place])
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

  -- Returns a window of this period without a count.
  local function new_window(length)
    local here = present[length]
    if here then return { letter = length, start = here.start, length = here.length, used = 0 } end
    return { length = length, start = from_first and now or now - now % length, used = 0, is_first = from_first }
  end

  -- Returns what to store, "" for nothing, and for how long; nil: too many windows.
  local function value_of(windows)
    local words, longest = {}, 1000
    for _, window in ipairs(windows) do
      if window.used > 0 then
        if window.letter then
          words[#words + 1] = format('%s%d-%d:%d', window.letter, window.start / 1e6, window.length / 1e6, window.used)
        elseif window.is_first then
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
    if is_far then return nil, { err = FAR } end
    kept, changes, named = windows_of(value)
    if not kept then return nil end
    windows, asked, used, new = {}, {}, {}, nil
    for r = 1, R do
      local name = from_first and -period[r] or period[r]
      local window = named[name] or new_window(period[r])
      named[name] = window
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
    if not new then new, ms = value_of(windows) end -- only a penalty has changed
    return store(key, value, new, ms)
  end

  local function tell(granted, reply, to)
    reply[to + 1] = granted or 0
    for r = 1, R do
      local retry, reset = 0, 0
      if granted then
        local total, left = asked[r].used, asked[r].start + asked[r].length - now
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

  return { behind = at + 2 + 2 * R, width = 1 + 3 * R, is_text = true, letter = 'w',
    look = look, charge = charge, write = write, tell = tell }
end
local algorithm = fixed
