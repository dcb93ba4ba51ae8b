
-- FUNNEL and BUCKET, for many keys: a fast path for the usual case, and funnel.lua for other cases.

local sub, pack, unpack_numbers = string.sub, struct.pack, struct.unpack
local sec, nsec = (now - now % 1e6) / 1e6, now % 1e6 * 1000
local tag, R = argv[4], tonumber(argv[5])
local first_n = 5 + 4 * R

local values, failed = fetch(1, #keys)
if failed then return failed end
local reply = R == 1 and values or {}

-- The usual case: one call for each key, at one rate, on keys with no other rate.
local part
local interval, inc, room = tonumber(argv[6]), tonumber(argv[7]), tonumber(argv[8])
local is_usual = R == 1 and how == '0' and inc <= room
local name, size = tag .. pack('>I7', interval), 1 + RECORD
local heads = {} -- heads[second]: the name and the second, as stored
-- The value and the time to live for the debt `last`: many keys often have the same debt.
local last, new, ms = -1, nil, nil
for i = 1, #keys do
  local value, n, wrong = values[i], argv[first_n + i], nil
  local debt, peak = 0, 0
  if value and #value == size and sub(value, 1, 8) == name then
    local s, ns, steps = unpack_numbers('>I4I4I4', value, 9)
    debt, peak = (s - sec) * 1e9 + (ns - nsec), steps * STEP
    if debt < 0 then debt = 0 end
  elseif value then
    debt = 1 -- not usual: the value of another program, or of several rates
  end
  if not is_usual or debt > peak or n and n ~= '1' then
    if not part then
      part = funnel(4)
      if string.find(how, 'p', 2, true) then penalties().note(part, how) end
    end
    wrong = decide(part, keys[i], value, tonumber(n or 1) * times, reply, (i - 1) * R)
  else
    local after = debt + inc
    values[i] = debt
    if after <= room then
      if after ~= last then
        local ns = after % 1e9
        local s = sec + (after - ns) / 1e9
        ns = ns + nsec
        if ns >= 1e9 then s, ns = s + 1, ns - 1e9 end
        local head = heads[s]
        if not head then
          head = name .. pack('>I4', s)
          heads[s] = head
        end
        last, new = after, head .. pack('>I4I4', ns, (after + (-after) % STEP) / STEP)
        ms = format('%d', (after + 999999) / 1e6)
      end
      local was = pcall('SET', keys[i], new, 'PX', ms, 'GET')
      if was and was ~= value then
        if sub(was.err, 1, 9) ~= 'WRONGTYPE' then return failure(was) end
        values[i] = WRONG
      end
    end
  end
  if wrong then return wrong end
end
return reply
