-- Decides calls by GCRA, at one or several rates, for many keys: FUNNEL, BUCKET, THROTTLE, CL.THROTTLE.
--
-- KEYS: at most some 4,000 keys, each once.
-- ARGV: database, clock in us ("" = Redis' own), peek ("1" or "0"), tag, R, then R times inc_ns, room_ns, burst_ns;
--   then nothing, or for each key how many equal calls it stands for.
-- Reply: for each key R integers, the debt of each rate in ns before this call; where the key holds something else,
--   the text of WRONGTYPE and R - 1 zeros.
--
-- Stored: tag, then for each rate the unix time in ns when its debt is paid (its TAT), joined by spaces. A tag in upper
-- case: somebody reserved a turn beyond the burst. Under a tag in lower case a debt beyond the burst comes from a clock
-- that went back or from a burst that was lowered, and is cut to the burst, for good even by a call that is refused:
-- its retry time would be wrong otherwise. Without a tag (redis-cell's format) nothing is cut.
--
-- A double holds integers up to 2^53, but ns since 1970 do not fit: seconds are subtracted first.

local MAX = 2 ^ 53
local sub, match, gmatch = string.sub, string.match, string.gmatch

local sec, nsec = (now - now % 1e6) / 1e6, now % 1e6 * 1000
local tag, R = argv[4], tonumber(argv[5])
local first_n = 5 + 3 * R
local inc, room, burst = {}, {}, {}
for r = 1, R do
  inc[r], room[r], burst[r] = tonumber(argv[3 + 3 * r]), tonumber(argv[4 + 3 * r]), tonumber(argv[5 + 3 * r])
end

-- One MGET for all: it shows a key of a wrong type as absent, so what is absent is looked at again before it counts.
local values = pcall('MGET', unpack(keys))
if values.err then return failure(values) end
local reply = R == 1 and values or {}

-- The TAT of this debt, in digits.
local function tat(debt)
  local ns = debt % 1e9
  local s = sec + (debt - ns) / 1e9
  ns = ns + nsec
  if ns >= 1e9 then s, ns = s + 1, ns - 1e9 end
  return format('%d%09d', s, ns)
end

-- Debts of a stored value, and whether one was cut; nil: it is not ours.
local function debts_of(value)
  local debts, cut, r = {}, false, 0
  local mark = sub(value, 1, #tag)
  local reserved = mark ~= tag
  if reserved and mark ~= tag:upper() then return nil end
  for word in gmatch(sub(value, #tag + 1) .. ' ', '(.-) ') do
    if #word > 20 or not match(word, '^%d+$') then return nil end
    r = r + 1
    if r <= R then
      local debt = ((tonumber(sub(word, 1, -10)) or 0) - sec) * 1e9 + (sub(word, -9) - nsec)
      if debt < 0 then debt = 0 elseif debt > MAX then debt = MAX end
      if debt > burst[r] and not reserved and tag ~= '' then debt, cut = burst[r], true end
      debts[r] = debt
    end
  end
  if tag == '' and r ~= 1 then return nil end
  for more = r + 1, R do debts[more] = 0 end
  return debts, cut
end

-- Any call on one key: the error that ends the whole call, or nil.
local function decide(i, n)
  local value, at, debts, cut = values[i], (i - 1) * R
  if value then
    debts, cut = debts_of(value)
  else
    debts = {}
    for r = 1, R do debts[r] = 0 end
  end

  local granted, changes = n, cut
  if debts and not peek then
    for r = 1, R do
      local passing = 0
      if inc[r] > 0 then
        passing = (room[r] - debts[r]) / inc[r]
        passing = passing - passing % 1
      elseif debts[r] + inc[r] <= room[r] then
        passing = n
      end
      if passing < granted then granted = passing end
    end
    if granted < 0 then granted = 0 end

    local longest, reserved, after = 0, false, {}
    for r = 1, R do
      local debt = debts[r] + granted * inc[r]
      if debt < 0 then debt = 0 end
      if debt ~= debts[r] then changes = true end
      if debt > longest then longest = debt end
      if debt > burst[r] then reserved = true end
      after[r] = debt
    end
    if changes and longest > 0 then
      for r = 1, R do after[r] = tat(after[r]) end
      local mark = reserved and tag:upper() or tag
      local ms = (longest + (-longest) % 1e6) / 1e6
      -- with GET it says that the type is wrong instead of writing over it
      local was = pcall('SET', keys[i], mark .. table.concat(after, ' '), 'PX', format('%d', ms), 'GET')
      if was and was ~= value then
        if sub(was.err, 1, 9) ~= 'WRONGTYPE' then return failure(was) end
        debts = nil
      end
      value = true
    elseif changes and value then
      local done = pcall('DEL', keys[i])
      if type(done) == 'table' then return failure(done) end
    end
  end
  if not value and pcall('EXISTS', keys[i]) == 1 then debts = nil end

  for r = 1, R do reply[at + r] = debts and debts[r] or 0 end
  if not debts then reply[at + 1] = WRONG end
end

-- The usual case, written for speed: one call at one rate, that reserves nothing.
local inc, room = inc[1], room[1]
local is_usual = R == 1 and not peek and inc > 0 and inc <= room and room == burst[1]
if not is_usual then
  for i = 1, #keys do
    local wrong = decide(i, tonumber(argv[first_n + i] or 1))
    if wrong then return wrong end
  end
  return reply
end

-- Values begin with the tag and ten digits: what is read and written there is kept for each second.
local head, whole = #tag + 10, #tag + 19
local seconds, formats = {}, {}
local function second_of(start)
  local s = tonumber(match(start, '^' .. tag .. '(%d%d%d%d%d%d%d%d%d%d)$')) or false
  seconds[start] = s
  return s
end
local function format_of(s)
  local f = format('%s%d%%09d', tag, s)
  formats[s] = f
  return f
end

local fresh, fresh_ms = tag .. tat(inc), format('%d', (inc + (-inc) % 1e6) / 1e6)
for i = 1, #keys do
  local value, n, wrong = values[i], argv[8 + i]
  if n and n ~= '1' then
    wrong = decide(i, tonumber(n))
  elseif value then
    local start = sub(value, 1, head)
    local s = seconds[start]
    if s == nil then s = second_of(start) end
    local ns = s and #value == whole and match(value, '^%d+$', head + 1)
    local debt = ns and (s - sec) * 1e9 + (ns - nsec) or MAX
    if debt < 0 then debt = 0 end
    local after = debt + inc
    if after <= room then
      -- as tat() does, without the call
      local ns = after % 1e9
      local s = sec + (after - ns) / 1e9
      ns = ns + nsec
      if ns >= 1e9 then s, ns = s + 1, ns - 1e9 end
      local new = format(formats[s] or format_of(s), ns)
      local was = pcall('SET', keys[i], new, 'PX', format('%d', (after + 999999) / 1e6), 'GET')
      if was and was ~= value then return failure(was) end
      values[i] = debt
    elseif debt <= room then
      values[i] = debt
    else
      wrong = decide(i, 1)
    end
  else
    local was = pcall('SET', keys[i], fresh, 'PX', fresh_ms, 'GET')
    if not was then
      values[i] = 0
    elseif sub(was.err, 1, 9) == 'WRONGTYPE' then
      values[i] = WRONG
    else
      return failure(was)
    end
  end
  if wrong then return wrong end
end
return values
