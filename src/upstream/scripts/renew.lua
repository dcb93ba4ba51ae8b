-- Deletes keys with the state of another algorithm than their named limit has now. The limit then
-- begins anew.
--
-- ARGV behind the prelude's words: a word, the code of the letter that the limit's own keys begin
-- with ("z": a sorted set), and two unused words. Reply: for each key three numbers, of which the
-- first is 1 if the key was deleted.
--
-- Only the state of a limit of another algorithm is deleted: a string in the form of that
-- algorithm, or the log of SLIDING. Holders of permits and keys that are not weir's stay. If two
-- calls find the same key, only one call deletes the key.

local RECORD = 19 -- of funnel.lua
local mine = string.char(tonumber(argv[5]))

-- Returns the letter of the algorithm that stored the value; nil: no algorithm did.
local function letter_of(value)
  local inner = value:match('^p%d[%d:]+(.+)$') -- behind a penalty: penalty.lua
  if inner and #inner == 1 then return inner end
  value = inner or value
  local letter = string.lower(string.sub(value, 1, 1))
  local is_text = string.match(value, '^%a%d')
  if (letter == 'w' or letter == 'a') and is_text and string.find(value, ':', 1, true) then return letter end
  local is_funnel = is_text or (#value > 1 and (#value - 1) % RECORD == 0)
  return (letter == 'f' or letter == 'b') and is_funnel and letter or nil
end

local reply = {}
for i = 1, #keys do
  local values, deleted = pcall('MGET', keys[i]), 0 -- a key of a wrong type looks absent here
  if values.err then return failure(values) end
  local foreign = false
  if values[1] then
    local letter = letter_of(values[1])
    foreign = letter and letter ~= mine
  elseif mine ~= 'z' then
    local first = pcall('ZRANGE', keys[i], 0, 0)
    foreign = not first.err and first[1] and string.sub(first[1], 1, 2) ~= 'h:'
  end
  if foreign then
    deleted = pcall('UNLINK', keys[i])
    if type(deleted) == 'table' then return failure(deleted) end
  end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = deleted, 0, 0
end
return reply
