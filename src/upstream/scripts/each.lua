
-- Each key by the one algorithm that stands in front of this.
local part = algorithm(4)
local values, wrong = {}, nil
if part.is_text then
  values, wrong = fetch(1, #keys)
  if wrong then return wrong end
end
local reply = {}
for i = 1, #keys do
  local n = tonumber(argv[part.behind - 1 + i] or 1) * times
  wrong = decide(part, keys[i], values[i], n, reply, (i - 1) * part.width)
  if wrong then return wrong end
end
return reply
