-- Decides calls by an exact log of the last ones, at one or several rates, for many keys: SLIDING.
--
-- ARGV: database, clock in us ("" = Redis' own), peek ("1" or "0"), cost, R, then R times count, period_us;
--   then nothing, or for each key how many equal calls it stands for.
-- Reply: for each key how many of its calls were granted, then for each rate three integers: units in the window before
--   them; us until another call would pass after them (0: now, -1: never); us until the window would be empty.
--   Where the key holds something else, the text of WRONGTYPE and 3 R zeros.
--
-- Stored: a sorted set with a member per unit, scored with its unix time in us and named time:sequence, so that none
-- collide. A unit at t counts at times in [t, t + period). Only a call that is granted adds or trims; but units of the
-- future, which a clock that went back has left, are moved to now at once, or they would lock the key.

local CHUNK = 1000 -- members in one ZADD: Lua's stack holds some 8,000 values

local now_text = format('%d', now)

local cost, R = tonumber(argv[4]), tonumber(argv[5])
local first_n = 5 + 2 * R
local count, period, after, longest = {}, {}, {}, 0
for r = 1, R do
  count[r], period[r] = tonumber(argv[4 + 2 * r]), tonumber(argv[5 + 2 * r])
  after[r] = format('(%d', now - period[r]) -- scores beyond this are in the window
  if period[r] > longest then longest = period[r] end
end
local longest_ms = format('%d', (longest + (-longest) % 1000) / 1000)

-- Add units at now, `future` of them in place of those of the future, and drop what is out of the longest window: an
-- error, or nil. `newest`: when the last unit was.
local function write(key, newest, units, future)
  units = units + future
  local first = newest and newest >= now and redis.call('ZCOUNT', key, now_text, now_text) or 0
  while units > 0 do
    local add = { 'ZADD', key }
    for _ = 1, math.min(units, CHUNK) do
      add[#add + 1] = now_text
      add[#add + 1] = format('%s:%d', now_text, first)
      first = first + 1
    end
    local done = pcall(unpack(add)) -- the first write: only this one can be refused
    if type(done) == 'table' then return failure(done) end
    units = units - CHUNK
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', format('%d', now - longest))
  if future > 0 then redis.call('ZREMRANGEBYSCORE', key, '(' .. now_text, '+inf') end
  redis.call('PEXPIRE', key, longest_ms)
end

-- The time of the unit that `rank` others are newer than.
local function time_of(key, rank)
  return tonumber(redis.call('ZREVRANGE', key, rank, rank, 'WITHSCORES')[2])
end

local reply = {}
for i, key in ipairs(keys) do
  local at, n = (i - 1) * (3 * R + 1), tonumber(argv[first_n + i] or 1)
  local last = pcall('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if last.err and string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then return failure(last) end
  if last.err or last[1] and not string.match(last[1], '^%d+:%d+$') then
    reply[at + 1] = WRONG
    for r = 2, 3 * R + 1 do reply[at + r] = 0 end
  else
    local newest = tonumber(last[2])
    local future = newest and newest > now and redis.call('ZCOUNT', key, '(' .. now_text, '+inf') or 0
    local used, granted = {}, n
    for r = 1, R do
      used[r] = newest and newest > now - period[r] and redis.call('ZCOUNT', key, after[r], '+inf') or 0
      local passing = (count[r] - used[r]) / cost
      granted = math.max(0, math.min(granted, passing - passing % 1))
    end
    local changes = granted > 0 or future > 0
    local last_at = changes and now or newest

    reply[at + 1] = granted
    for r = 1, R do
      local retry, total = 0, used[r] + granted * cost
      local leaving = total + cost - count[r] -- so many of the oldest have to go before another call passes
      if cost > count[r] then
        retry = -1
      elseif leaving > used[r] - future then
        retry = period[r]
      elseif leaving > 0 then
        retry = time_of(key, used[r] - leaving) + period[r] - now
      end
      reply[at + 3 * r - 1], reply[at + 3 * r] = used[r], retry
      reply[at + 3 * r + 1] = last_at and math.max(0, last_at + period[r] - now) or 0
    end

    if changes and not peek then
      local wrong = write(key, newest, granted * cost, future)
      if wrong then return wrong end
    end
  end
end
return reply
