-- Keeps at most `max` holders of a key at once, each with an expiry of its own, for many keys:
-- ACQUIRE, RENEW, RELEASE.
--
-- ARGV: database, clock in us ("": Redis' own), peek ("1" or "0"), "acquire" | "renew" | "release",
-- max, ttl_ms, channel; then for each key the holder's token. Reply: for each key three integers: 1
-- if granted; the number of holders now; the ms until a permit is free at the latest, if acquire
-- was not granted (-1: never), else 0. If the key holds another value: the text of WRONGTYPE and
-- two zeros.
--
-- Stored: a sorted set of "h:" and the token, with the unix time of its expiry in ms as score. The
-- key expires with its last holder. An acquire by a present holder renews the permit. A release
-- publishes the key to the channel, if the channel's name is not empty. Expired holders are not
-- counted. A write removes at most PRUNED expired holders. Holders have scores of at least 0.
-- Members with lower scores are neither counted nor removed.
--
-- A score is less than the expiry, by at most one ms. The fraction of the score, in 1024ths, spells
-- the granted time: 1 + 16 * e + m is (16 + m) / 16 * 2^e ms, rounded up. A holder that expires
-- later than the granted time from now was left by a clock that went back. When a call is refused,
-- the time of these holders begins now, for at most PRUNED holders at once. A score without a
-- fraction is of the old form, and stays unchanged.

local PRUNED = 100

local now_ms = (now - now % 1000) / 1000
local now_text = format('%d', now_ms)

local op, channel = argv[4], argv[7]
local WRITES = { op == 'release' and 'zrem' or 'zadd', 'zremrangebyrank', 'pexpire' }
local max, ttl = tonumber(argv[5]), tonumber(argv[6])
-- The expiry is rounded up: no holder loses a part of a millisecond.
local over = (now + (-now) % 1000) / 1000 + (ttl or 0)

-- Returns the score of a holder that expires at over_ms; `code` spells its granted time.
local function score_of(over_ms, code)
  return format('%.17g', over_ms - 1 + code / 1024)
end

local function code_of(ms)
  local mantissa, exponent = math.frexp(ms)
  return 1 + 16 * (exponent - 1) + math.ceil(32 * mantissa - 16)
end

-- Returns the code and the granted ms of a holder, if a clock has gone back since the grant.
local function ahead(score)
  local code = score % 1 * 1024
  local m = (code - 1) % 16
  local ms = (16 + m) * 2 ^ ((code - 1 - m) / 16 - 4)
  if code > 0 and math.ceil(score) - ms > now_ms + 2 then return code, ms end
end

-- Removes expired holders, and lets the key expire with the last of the other holders.
local function tidy(key)
  local gone = math.min(redis.call('ZCOUNT', key, '0', now_text), PRUNED)
  if gone > 0 then
    local first = redis.call('ZCOUNT', key, '-inf', '(0') -- the rank of the first holder
    redis.call('ZREMRANGEBYRANK', key, first, first + gone - 1)
  end
  local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
  if last then redis.call('PEXPIRE', key, format('%d', math.max(1, math.ceil(last) - now_ms))) end
end

-- Lets the time of holders ahead of the clock begin now. Returns an error, or nil.
local function bring_back(key)
  local from = '(' .. now_text
  local latest = redis.call('ZREVRANGEBYSCORE', key, '+inf', from, 'WITHSCORES', 'LIMIT', 0, PRUNED)
  local brought = false
  for j = 1, #latest, 2 do
    local code, ms = ahead(tonumber(latest[j + 1]))
    if code then
      local done = pcall('ZADD', key, score_of(now_ms + 1 + math.ceil(ms), code), latest[j])
      if type(done) == 'table' then return failure(done) end
      brought = true
    end
  end
  if brought then tidy(key) end
end

local reply, wrong = {}, nil
for i, key in ipairs(keys) do
  local member, at = 'h:' .. argv[7 + i], 3 * (i - 1)
  local last = pcall('ZREVRANGE', key, 0, 0)
  if last.err and string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then return failure(last) end
  if last.err or last[1] and string.sub(last[1], 1, 2) ~= 'h:' then
    reply[at + 1], reply[at + 2], reply[at + 3] = WRONG, 0, 0
  else
    wrong = not peek and denied(key, WRITES)
    if wrong then return wrong end
    local held = redis.call('ZCOUNT', key, '(' .. now_text, '+inf')
    local mine = tonumber(redis.call('ZSCORE', key, member))
    local holds = mine and mine > now_ms
    local granted, retry = holds and 1 or 0, 0

    if op == 'release' then
      if mine and not peek then
        if holds and channel ~= '' then
          local told = pcall('PUBLISH', channel, key) -- heard only when the script is done
          if type(told) == 'table' then return failure(told) end
        end
        local done = pcall('ZREM', key, member)
        if type(done) == 'table' then return failure(done) end
        tidy(key)
      end
      held = held - granted
    else
      if op == 'acquire' and not holds then
        if held < max then
          granted, held = 1, held + 1
        elseif max > 0 then
          wrong = not peek and bring_back(key)
          if wrong then return wrong end
          -- The first of the last `max` holders makes room: all earlier holders have expired by
          -- then.
          local first = redis.call('ZREVRANGE', key, max - 1, max - 1, 'WITHSCORES')
          local left = math.ceil(first[2]) * 1000 - now
          retry = (left + (-left) % 1000) / 1000
        else
          retry = -1
        end
      end
      if granted == 1 and not peek then
        local done = pcall('ZADD', key, score_of(over, code_of(ttl)), member)
        if type(done) == 'table' then return failure(done) end
        tidy(key)
      end
    end
    reply[at + 1], reply[at + 2], reply[at + 3] = granted, held, retry
  end
end
return reply
