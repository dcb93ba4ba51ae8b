-- Sets or removes a penalty by command, for many keys: BAN, UNBAN.
--
-- ARGV behind the prelude's words: "ban" | "unban"; the code of the letter of the key's algorithm
-- ("z": a sorted set); the ms of the penalty; an unused word. Reply: for each key three numbers, of
-- which the first is 1 if UNBAN has ended a penalty, or BAN has set a penalty. If the key holds
-- another value: the text of WRONGTYPE and two zeros.
--
-- The counts of the key stay. A ban also keeps the length of the last penalty that grows, as long
-- as that length is remembered.

local penalty = penalties()
local is_ban, letter, span = argv[4] == 'ban', string.char(tonumber(argv[5])), tonumber(argv[6])

-- Returns the record from now on, and the first number of the reply.
local function decide(record)
  if not is_ban then return nil, record and record.left > 0 and 1 or 0 end
  if not record then return penalty.new(span, 0, 0), 1 end
  return penalty.new(span, record.last, record.rest), 1
end

local function of_string(key, value)
  local inner, record = value, nil
  if value and string.byte(value) == 112 then inner, record = penalty.unwrap(value, letter) end
  if inner and string.lower(string.sub(inner, 1, 1)) ~= letter or not value and pcall('EXISTS', key) == 1 then
    return WRONG
  end
  local after, found = decide(record)
  local ms = value and math.max(1, penalty.ttl(key)) or 0
  if not after and inner == value then return found end
  penalty.put_front({ letter = letter, record = after }, value)
  local wrong = store(key, value, inner or '', format('%d', ms))
  front = nil
  return wrong or found
end

local function of_log(key)
  local last = pcall('ZREVRANGE', key, 0, 0)
  if last.err then return string.sub(last.err, 1, 9) == 'WRONGTYPE' and WRONG or failure(last) end
  local name, record, log, mark = last[1], nil, now, nil
  if name and string.byte(name) == 112 then
    mark, record, log = name, penalty.read(name)
    if not log then return WRONG end
  elseif name and not string.match(name, '^%d+[+:]%d+$') then
    return WRONG
  elseif name then
    log = now + penalty.ttl(key) * 1000
  end
  local after, found = decide(record)
  return (mark or after) and penalty.mark(key, mark, after, log) or found
end

local values, failed = fetch(1, #keys)
if failed then return failed end
local reply = {}
for i = 1, #keys do
  local found = (letter == 'z' and of_log or of_string)(keys[i], values[i])
  if type(found) == 'table' then return found end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = found, 0, 0
end
return reply
