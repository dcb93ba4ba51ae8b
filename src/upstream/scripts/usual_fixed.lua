
-- A fast path of FIXED for the usual case: one rate, and a key that counts in the present window of
-- its period and in no other window. The period of a calendar is no number.
if how == '0' and argv[5] == '1' and tonumber(argv[7]) then
  local cost, count, length = tonumber(argv[4]), tonumber(argv[6]), tonumber(argv[7])
  local start, digits = now - now % length, #format('%d', length / 1000)
  local left = start + length - now
  local head = format('w%d:', start + (length / 10 + digits - start) % 10 ^ (digits + 2))
  local behind, ms = #head + 1, format('%d', (left + (-left) % 1000) / 1000)
  local sub = string.sub

  usual = function(key, value, n, reply, to)
    local used = 0
    if value then
      used = sub(value, 1, #head) == head and tonumber(sub(value, behind))
      if not used then return true end
    end
    local granted, total, wrong = (count - used) / cost, used, nil
    granted = math.max(0, math.min(n, granted - granted % 1))
    if granted > 0 then
      total = used + granted * cost
      wrong = store(key, value, head .. format('%d', total), ms)
      if type(wrong) == 'table' then return wrong end
    elseif not value and pcall('EXISTS', key) == 1 then
      wrong = WRONG
    end
    if wrong then
      reply[to + 1], reply[to + 2], reply[to + 3], reply[to + 4] = wrong, 0, 0, 0
    else
      reply[to + 1], reply[to + 2] = granted, used
      reply[to + 3] = cost > count and -1 or total + cost > count and left or 0
      reply[to + 4] = total > 0 and left or 0
    end
  end
end
