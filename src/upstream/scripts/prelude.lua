-- How every script here begins: upstream/script.c puts this file in front of each of the others.
--
-- ARGV begins with the database, the clock in us since 1970 ("" = Redis' own), and peek ("1" or "0").

local WRONG = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local keys, argv, pcall, format = KEYS, ARGV, redis.pcall, string.format

-- An error in Redis' own words: 6.2 puts the place in the script in front.
local function failure(reply)
  return { err = string.match(reply.err, '^@user_script: %d+: %-(.*)') or reply.err }
end

if argv[1] ~= '0' then
  local done = pcall('SELECT', argv[1])
  if done.err then return failure(done) end
end

local now, peek = tonumber(argv[2]), argv[3] == '1'
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1e6 + time[2]
end

