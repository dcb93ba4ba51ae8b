-- The beginning of each script. scripts.def says which files follow.
--
-- ARGV begins with the database, the clock in us since 1970 ("": Redis' own), and `how`. `how` is
-- "1" if nothing is written (a peek), else "0". Letters follow:
--
-- f     all calls pass, whatever the debt; the cost of a call may be below 0
-- a     refused calls count too, as far as there is room below the limit
-- s     windows start with their first use
-- xN    each call stands for N
-- pN:M  a refused call begins a penalty: of N ms, or growing up to M
-- wN    no penalty begins if the call passes within N us, for the client then retries

local WRONG = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local keys, argv, pcall, format = KEYS, ARGV, redis.pcall, string.format

-- Returns an error in Redis' own words. Redis 6.2 puts the line of the script in front of the
-- error.
local function failure(reply)
  return { err = string.match(reply.err, '^@user_script: %d+: %-(.*)') or reply.err }
end

-- Returns an error if Redis would deny one of these commands on `key`. An algorithm with several
-- writes calls denied() before the first write: a denied call then changes nothing. Each command is
-- checked once. Redis up to 6.2 has no acl_check_cmd.
local may, asked_about = redis.acl_check_cmd, {}
local function denied(key, names)
  for _, name in ipairs(may and names or {}) do
    if not asked_about[name] and not may(name, key) then
      return { err = format("NOPERM this user has no permissions to run the '%s' command on this key", name) }
    end
    asked_about[name] = true
  end
end

-- Returns the values of the keys first to last. All strings are read here, and written by store().
-- A key of a wrong type looks absent here, so an absent key is checked again before it counts as
-- absent.
local function fetch(first, last)
  local values = pcall('MGET', unpack(keys, first, last))
  return values, values.err and failure(values)
end

-- `front` is set while the next store() puts a record in front of the value (penalty.lua). `value`
-- is all that was read of the key. put(new, ms) returns the value that is stored instead of `new`,
-- and for how many ms.
local front

-- Stores `new` for `ms` ms ('' or '0': nothing) in place of `value`; false: the key looked absent.
-- Returns nil; or WRONG if the key has another type; or a table, an error that ends the call. Only
-- the first write of a call can return a table.
local function store(key, value, new, ms)
  if front then value, new, ms = front.value, front.put(new, ms) end
  if new == '' or ms == '0' then
    local done = pcall('DEL', key)
    return type(done) == 'table' and failure(done) or nil
  end
  -- With GET, SET refuses a key of another type instead of writing over it.
  local was = pcall('SET', key, new, 'PX', ms, 'GET')
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

