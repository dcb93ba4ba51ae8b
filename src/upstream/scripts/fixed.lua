-- Decides calls by a counter for each window of time, at one or several rates, for many keys: FIXED.
--
-- ARGV and reply: as in sliding.lua.
--
-- Stored: "w", then for each rate start:count, joined by spaces; start is the unix time in us when its window began, a
-- multiple of the period. A window that begins after the next one was left by a clock that went back: its count goes
-- over to the present window at once, even by a call that is refused, or it would lock the key. The next one stays: a
-- clock that goes back by a moment admits nothing twice.

local cost, R = tonumber(argv[4]), tonumber(argv[5])
local first_n = 5 + 2 * R
local count, period, start = {}, {}, {}
for r = 1, R do
  count[r], period[r] = tonumber(argv[4 + 2 * r]), tonumber(argv[5 + 2 * r])
  start[r] = now - now % period[r]
end

-- Where each stored window begins and what is counted in it, as seen from now, and whether a window was brought back;
-- nil: the value is not ours.
local function windows_of(value)
  local from, used, brought, r = {}, {}, false, 0
  if value then
    if string.sub(value, 1, 1) ~= 'w' then return nil end
    for word in string.gmatch(string.sub(value, 2) .. ' ', '(.-) ') do
      local s, c = string.match(word, '^(%d+):(%d+)$')
      s, c, r = tonumber(s), tonumber(c), r + 1
      if not s then return nil end
      if r <= R then
        local here, following = start[r], start[r] + period[r]
        if s == following then
          here = s
        elseif s > following then
          brought = brought or c > 0
        elseif s < here then
          c = 0
        end
        from[r], used[r] = here, c
      end
    end
  end
  for more = r + 1, R do from[more], used[more] = start[more], 0 end
  return from, used, brought
end

local values = pcall('MGET', unpack(keys)) -- a key of a wrong type looks absent here
if values.err then return failure(values) end
local reply = {}
for i = 1, #keys do
  local key, value, n = keys[i], values[i], tonumber(argv[first_n + i] or 1)
  local at = (i - 1) * (3 * R + 1)
  local from, used, brought = windows_of(value)
  local granted = from and n or 0
  for r = 1, from and R or 0 do
    local passing = (count[r] - used[r]) / cost
    granted = math.max(0, math.min(granted, passing - passing % 1))
  end

  if from and not peek and (granted > 0 or brought) then
    local windows, ms = {}, 1
    for r = 1, R do
      local total = used[r] + granted * cost
      windows[r] = format('%d:%d', from[r], total)
      local left = from[r] + period[r] - now
      if total > 0 then ms = math.max(ms, (left + (-left) % 1000) / 1000) end
    end
    -- with GET it says that the type is wrong instead of writing over it
    local was = pcall('SET', key, 'w' .. table.concat(windows, ' '), 'PX', format('%d', ms), 'GET')
    if was and was ~= value then
      if string.sub(was.err, 1, 9) ~= 'WRONGTYPE' then return failure(was) end
      from = nil
    end
  elseif not value and pcall('EXISTS', key) == 1 then
    from = nil
  end

  if from then
    reply[at + 1] = granted
    for r = 1, R do
      local total, left, retry = used[r] + granted * cost, from[r] + period[r] - now, 0
      if cost > count[r] then
        retry = -1
      elseif total + cost > count[r] then
        retry = left
      end
      reply[at + 3 * r - 1], reply[at + 3 * r], reply[at + 3 * r + 1] = used[r], retry, total > 0 and left or 0
    end
  else
    reply[at + 1] = WRONG
    for r = 2, 3 * R + 1 do reply[at + r] = 0 end
  end
end
return reply
