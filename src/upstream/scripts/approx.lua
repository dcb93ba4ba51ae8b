-- Decides calls by two counters in place of a log, at one or several rates, for many keys: SLIDING APPROX.
--
-- ARGV and reply: as in sliding.lua.
--
-- Windows are aligned to multiples of the period. What the window that slides holds is taken as
-- current + previous * (part of the previous one that it still covers), rounded up: exact when the previous calls were
-- spread evenly, and off by at most what the previous window held.
-- Stored: "a", then for each rate start:current:previous, joined by spaces; start is the unix time in us when the
-- current window began. A window that begins after the next one was left by a clock that went back: it becomes the
-- present one at once, even by a call that is refused, or it would lock the key. The next one stays.

local EXACT = 2 ^ 53

local cost, R = tonumber(argv[4]), tonumber(argv[5])
local first_n = 5 + 2 * R
local count, period, start = {}, {}, {}
for r = 1, R do
  count[r], period[r] = tonumber(argv[4 + 2 * r]), tonumber(argv[5 + 2 * r])
  start[r] = now - now % period[r]
end

-- a * b / c rounded up, where b <= c: exact while a * b is; beyond that never less than it should be.
local function ceil_share(a, b, c)
  local product = a * b
  if product <= EXACT then return (product + (-product) % c) / c end
  return math.min(a, math.ceil(a * (b / c) * (1 + 2 ^ -50)))
end

-- a * b / c rounded down, where a <= c: exact while a * b is; beyond that never more than it should be.
local function floor_share(a, b, c)
  local product = a * b
  if product <= EXACT then return (product - product % c) / c end
  return math.floor(b * (a / c) * (1 - 2 ^ -50))
end

-- For each rate the beginning of the stored window, current and previous count, as seen from now, and whether a window
-- was brought back; nil: the value is not ours.
local function windows_of(value)
  local from, current, previous, brought, r = {}, {}, {}, false, 0
  if value then
    if string.sub(value, 1, 1) ~= 'a' then return nil end
    for word in string.gmatch(string.sub(value, 2) .. ' ', '(.-) ') do
      local s, c, p = string.match(word, '^(%d+):(%d+):(%d+)$')
      s, c, p, r = tonumber(s), tonumber(c), tonumber(p), r + 1
      if not s then return nil end
      if r <= R then
        local here, following = start[r], start[r] + period[r]
        if s == following then
          here = s
        elseif s > following then
          brought = brought or c + p > 0
        elseif s < here - period[r] then
          c, p = 0, 0
        elseif s < here then
          c, p = 0, c
        end
        from[r], current[r], previous[r] = here, c, p
      end
    end
  end
  for more = r + 1, R do from[more], current[more], previous[more] = start[more], 0, 0 end
  return from, current, previous, brought
end

-- us from the beginning of a window to when a share of its predecessor's count as small as `room` is left.
local function decay(previous, room, length)
  if previous <= room then return 0 end
  return length - floor_share(room, length, previous)
end

-- us until one more call passes, when the window that begins at `from` holds `current` after `previous`.
local function retry_of(r, from, current, previous)
  local length, room = period[r], count[r] - cost
  if room < 0 then return -1 end
  local wait = length + decay(current, room, length)
  if current <= room then wait = decay(previous, room - current, length) end
  return wait > 0 and math.max(0, from + wait - now) or 0
end

local values = pcall('MGET', unpack(keys)) -- a key of a wrong type looks absent here
if values.err then return failure(values) end
local reply = {}
for i = 1, #keys do
  local key, value, n = keys[i], values[i], tonumber(argv[first_n + i] or 1)
  local at = (i - 1) * (3 * R + 1)
  local from, current, previous, brought = windows_of(value)
  local granted, used = from and n or 0, {}
  for r = 1, from and R or 0 do
    local passed = math.max(0, now - from[r])
    used[r] = current[r] + ceil_share(previous[r], period[r] - passed, period[r])
    local passing = (count[r] - used[r]) / cost
    granted = math.max(0, math.min(granted, passing - passing % 1))
  end

  local windows, longest = {}, 0
  for r = 1, from and R or 0 do
    current[r] = current[r] + granted * cost
    windows[r] = format('%d:%d:%d', from[r], current[r], previous[r])
    local reset = 0
    if current[r] > 0 then
      reset = from[r] + 2 * period[r] - now
    elseif previous[r] > 0 then
      reset = from[r] + period[r] - now
    end
    if reset > longest then longest = reset end
    reply[at + 3 * r - 1], reply[at + 3 * r + 1] = used[r], reset
    reply[at + 3 * r] = retry_of(r, from[r], current[r], previous[r])
  end

  if from and not peek and (granted > 0 or brought) then
    local ms = format('%d', (longest + (-longest) % 1000) / 1000)
    -- with GET it says that the type is wrong instead of writing over it
    local was = pcall('SET', key, 'a' .. table.concat(windows, ' '), 'PX', ms, 'GET')
    if was and was ~= value then
      if string.sub(was.err, 1, 9) ~= 'WRONGTYPE' then return failure(was) end
      from = nil
    end
  elseif not value and pcall('EXISTS', key) == 1 then
    from = nil
  end

  reply[at + 1] = granted
  if not from then
    reply[at + 1] = WRONG
    for r = 2, 3 * R + 1 do reply[at + r] = 0 end
  end
end
return reply
