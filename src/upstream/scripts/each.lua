
-- Each key by the one algorithm that stands in front of this, which counts in windows; the usual ones by `usual`, where there
-- is such a function.
local R = tonumber(argv[5])
local first_n, width = 5 + 2 * R, 1 + 3 * R
local part = not usual and algorithm(4)
local values, wrong = {}, nil
if usual or part.is_text then
  values, wrong = fetch(1, #keys)
  if wrong then return wrong end
end
local reply = {}
for i = 1, #keys do
  local key, value, n, to = keys[i], values[i], tonumber(argv[first_n + i] or 1), (i - 1) * width
  wrong = not usual or usual(key, value, n, reply, to)
  if wrong == true then
    part = part or algorithm(4)
    wrong = decide(part, key, value, n * times, reply, to)
  end
  if wrong then return wrong end
end
return reply
