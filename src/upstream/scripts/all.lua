
-- Several keys of several algorithms, all or nothing. A call passes if each of its parts has room,
-- and is then charged to all parts. A refused call is charged to no part, or counts in all parts.
--
-- KEYS: for each call P keys, one for each part, all different within a call. ARGV behind the
-- prelude's words: P, then for each part the name of its algorithm, a letter, and the algorithm's
-- numbers. A number for each call may follow: how many equal calls the call stands for. The
-- letters:
--
-- -  refuses calls for which it has no room
-- s  refuses nothing, and is charged as far as it has room itself (shadow mode)
-- l  refuses nothing, and is charged nothing (a look)
--
-- Behind the letter may be the penalty of the part, as in the prelude's pN:M. The penalty begins
-- when this part refuses. Reply: for each call the integers of its parts, one part behind the
-- other. If a part counts in windows, its first integer is how many calls fit that part alone. If a
-- part's key holds another value, or can store no more, the part's first integer is the text of the
-- error. All other integers are then 0, and nothing is changed.

local STRING_WRITES = { 'set', 'del' }
local algorithms = { funnel = funnel, sliding = sliding, approx = approx, fixed = fixed }
local P, parts, behind, width = tonumber(argv[4]), {}, 5, 0
for p = 1, P do
  local letter = string.sub(argv[behind + 1], 1, 1)
  local part = algorithms[argv[behind]](behind + 2)
  if #argv[behind + 1] > 1 then penalties().note(part, argv[behind + 1]) end
  part.is_look = letter == 'l'
  part.binds = letter == '-'
  parts[p], behind, width = part, part.behind, width + part.width
end
local reply = {}

-- Writes the reply of a call with a key that cannot be charged: the call has no effect.
local function spoil(wrong, p, to)
  for _, part in ipairs(parts) do
    part.tell(nil, reply, to)
    if part == parts[p] then reply[to + 1] = wrong end
    to = to + part.width
  end
end

-- Decides n equal calls on the keys from `first` on. Returns nil, or an error that ends the script.
-- Only the first write can cause such an error.
local function decide_all(first, n, to)
  local values, failed = fetch(first, first + P - 1)
  if failed then return failed end
  local fitting, inner, changes, granted = {}, {}, {}, n
  for p, part in ipairs(parts) do
    local key, value = keys[first + p - 1], values[p]
    part.record, inner[p] = nil, value
    if value and string.byte(value) == 112 then inner[p], part.record = penalties().unwrap(value, part.letter) end
    fitting[p], failed = part.look(key, inner[p], n)
    if failed then return failed end
    if not fitting[p] or part.is_text and not value and pcall('EXISTS', key) == 1 then return spoil(WRONG, p, to) end
    if part.record then fitting[p] = penalties().grant(part.record, fitting[p]) end
    if part.binds then granted = math.min(granted, fitting[p]) end
  end
  for p, part in ipairs(parts) do
    local tries = part.is_look and 0 or n
    local wrong
    changes[p], wrong = part.charge(tries, math.min(tries, granted, fitting[p]), keys[first + p - 1])
    if wrong then return spoil(wrong, p, to) end
    local has_penalty = tries > 0 and (part.first or part.record)
    -- Calls that another part refuses take no room in this part.
    local passing = (counts_all or fitting[p] <= granted) and fitting[p] or n
    if has_penalty then changes[p] = penalties().follow(part, passing, n) or changes[p] end
  end
  for p, part in ipairs(parts) do
    local key = keys[first + p - 1]
    failed = changes[p] and (part.check and part.check(key) or not part.check and denied(key, STRING_WRITES))
    if failed then return failed end
  end
  for p, part in ipairs(parts) do
    if part.record or inner[p] ~= values[p] then penalties().put_front(part, values[p]) end
    local wrong = changes[p] and part.write(keys[first + p - 1], inner[p])
    front = nil
    if wrong then return wrong end
    part.tell(fitting[p], reply, to)
    if part.record then penalties().tell(part.record, reply, to, fitting[p]) end
    to = to + part.width
  end
end

for first = 1, #keys, P do
  local call = (first - 1) / P
  local wrong = decide_all(first, tonumber(argv[behind + call] or 1), call * width)
  if wrong then return wrong end
end
return reply
