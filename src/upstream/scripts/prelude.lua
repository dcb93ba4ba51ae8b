-- How every script here begins: scripts.def says which files follow this one.
--
-- ARGV begins with the database, the clock in us since 1970 ("" = Redis' own), and how: "1" where nothing is to be
-- written (a peek), else "0", and then for each of these a letter:
--   f  all calls are let through, whatever is owed; what they take may be less than 0
--   a  what is refused counts too: as much of it as still has room below the limit
--   s  windows start with their first use
--   xN each call stands for N
--   pN:M  who is refused has a penalty: of N ms, or growing up to M
--   wN    but not who is refused for N us at most: he tries again

local WRONG = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local keys, argv, pcall, format = KEYS, ARGV, redis.pcall, string.format

-- An error in Redis' own words: 6.2 puts the place in the script in front.
local function failure(reply)
  return { err = string.match(reply.err, '^@user_script: %d+: %-(.*)') or reply.err }
end

-- An error if Redis would not let us use one of these commands on `key`: asked before the first write of what takes several,
-- so that what is refused in the end has changed nothing. Each is asked about once. Up to 6.2 Redis cannot be asked.
local may, asked_about = redis.acl_check_cmd, {}
local function denied(key, names)
  for _, name in ipairs(may and names or {}) do
    if not asked_about[name] and not may(name, key) then
      return { err = format("NOPERM this user has no permissions to run the '%s' command on this key", name) }
    end
    asked_about[name] = true
  end
end

-- What is stored at keys first to last: all that is ever read of strings comes from here, and goes through store(). A key
-- of a wrong type looks absent here, so what is absent is looked at again before it counts.
local function fetch(first, last)
  local values = pcall('MGET', unpack(keys, first, last))
  return values, values.err and failure(values)
end

-- What stands in front of the value that is stored next, if there is anything: `value`, all that was read of the key, and
-- put(new, ms), what is stored for how long in place of those (penalty.lua).
local front

-- Stores `new` for so many ms ('' or '0': nothing) where `value` was; false: the key looked absent. Returns nil, WRONG where
-- something of another type stands there, or a table: an error that ends the call, which only a first write can have.
local function store(key, value, new, ms)
  if front then value, new, ms = front.value, front.put(new, ms) end
  if new == '' or ms == '0' then
    local done = pcall('DEL', key)
    return type(done) == 'table' and failure(done) or nil
  end
  local was = pcall('SET', key, new, 'PX', ms, 'GET') -- with GET it says that the type is wrong instead of writing over it
  if not was or was == value then return nil end
  return string.sub(was.err, 1, 9) == 'WRONGTYPE' and WRONG or failure(was)
end

if argv[1] ~= '0' then
  local done = pcall('SELECT', argv[1])
  if done.err then return failure(done) end
end

local now, how = tonumber(argv[2]), argv[3]
local peek, is_forced, counts_all, from_first, times = how == '1', false, false, false, 1
if #how > 1 then
  peek, is_forced = string.sub(how, 1, 1) == '1', string.find(how, 'f', 2, true)
  counts_all, from_first = string.find(how, 'a', 2, true), string.find(how, 's', 2, true)
  times = tonumber(string.match(how, 'x(%d+)') or 1)
end
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1e6 + time[2]
end

