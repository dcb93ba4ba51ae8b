
-- Decides each key by the one algorithm in front of this file. Usual cases are decided by `usual`,
-- if that function exists: an algorithm with `usual` counts in windows.
local part = not usual and algorithm(4)
local behind, width
if part then
  behind, width = part.behind, part.width
else
  behind, width = 6 + 2 * argv[5], 1 + 3 * argv[5]
end
if part and string.find(how, 'p', 2, true) then penalties().note(part, how) end
local values, wrong = {}, nil
if usual or part.is_text then
  values, wrong = fetch(1, #keys)
  if wrong then return wrong end
end
local reply = {}
for i = 1, #keys do
  local key, value, n, to = keys[i], values[i], tonumber(argv[behind - 1 + i] or 1), (i - 1) * width
  wrong = not usual or usual(key, value, n, reply, to)
  if wrong == true then
    part = part or algorithm(4)
    wrong = decide(part, key, value, n * times, reply, to)
  end
  if wrong then return wrong end
end
return reply
