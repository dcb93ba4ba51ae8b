-- Decides calls by GCRA as redis-cell does, for many keys: THROTTLE, CL.THROTTLE.
--
-- ARGV and reply are as in funnel.lua, with one rate. The number inc_ns may be 0 or less: a
-- negative inc_ns gives units back.
--
-- Stored: redis-cell's own value, the unix time in ns when the debt is paid (its TAT), in digits.
-- All rates share this value: each call adds its own time, and nothing is ever cut.
--
-- A double holds integers up to 2^53, and ns since 1970 exceed that. Seconds are therefore
-- subtracted first.

local MAX = 2 ^ 53
local sub, match = string.sub, string.match

local sec, nsec = (now - now % 1e6) / 1e6, now % 1e6 * 1000
local inc, room = tonumber(argv[7]), tonumber(argv[8])

local values, wrong = fetch(1, #keys)
if wrong then return wrong end

-- Returns the TAT of this debt, in digits.
local function tat(debt)
  local ns = debt % 1e9
  local s = sec + (debt - ns) / 1e9
  ns = ns + nsec
  if ns >= 1e9 then s, ns = s + 1, ns - 1e9 end
  return format('%d%09d', s, ns)
end

-- Returns the debt of a stored value; nil: the value is not weir's.
local function debt_of(value)
  if #value > 20 or not match(value, '^%d+$') then return nil end
  local debt = ((tonumber(sub(value, 1, -10)) or 0) - sec) * 1e9 + (sub(value, -9) - nsec)
  return math.max(0, math.min(debt, MAX))
end

-- Returns how many of n calls fit over this debt. If inc is 0 or less, all calls fit, or no call
-- fits.
local function grant(debt, n)
  if inc <= 0 then return debt + inc <= room and n or 0 end
  local passing = (room - debt) / inc
  return math.max(0, math.min(n, passing - passing % 1))
end

for i = 1, #keys do
  local value = values[i]
  local debt = 0
  if value then debt = debt_of(value) end
  local after = debt
  if debt and not peek then after = math.max(0, debt + grant(debt, tonumber(argv[9 + i] or 1)) * inc) end

  if after == debt then
    if not value and pcall('EXISTS', keys[i]) == 1 then debt = nil end
  else
    wrong = store(keys[i], value, after > 0 and tat(after) or '', format('%d', (after + 999999) / 1e6))
    if type(wrong) == 'table' then return wrong end
    if wrong then debt = nil end
  end
  values[i] = debt or WRONG
end
return values
