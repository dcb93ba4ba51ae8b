
-- A fast path of SLIDING APPROX for the usual case: one rate, and a key that counts in the present
-- window of its period, or in the window before, and in no other window. The counts are so small
-- that all sums are exact.
if how == '0' and argv[5] == '1' then
  local cost, count, length = tonumber(argv[4]), tonumber(argv[6]), tonumber(argv[7])
  local most = 2 ^ 53 / length
  local start, digits = now - now % length, #format('%d', length / 1000)
  local left = start + length - now

  local function spelled(moment)
    return format('%d', moment + (length / 10 + digits - moment) % 10 ^ (digits + 2))
  end
  local here, before = spelled(start), spelled(start - length)
  local lives = left + length
  local ms = format('%d', (lives + (-lives) % 1000) / 1000)

  -- Returns the us from a window's beginning until at most `room` of the previous count is left.
  local function decay(held, room)
    if held <= room then return 0 end
    local product = room * length
    return length - (product - product % held) / held
  end

  usual = function(key, value, n, reply, to)
    local current, previous = 0, 0
    if value then
      local moment, a, b = string.match(value, '^a(%d+):(%d+):(%d+)$')
      if moment == here then
        current, previous = tonumber(a), tonumber(b)
      elseif moment == before then
        previous = tonumber(a)
      else
        return true
      end
    end
    if current > most or previous > most then return true end
    local product, wrong = previous * left, nil
    local used = current + (product + (-product) % length) / length
    local granted = (count - used) / cost
    granted = math.max(0, math.min(n, granted - granted % 1))
    if granted > 0 then
      current = current + granted * cost
      wrong = store(key, value, 'a' .. here .. format(':%d:%d', current, previous), ms)
      if type(wrong) == 'table' then return wrong end
    elseif not value and pcall('EXISTS', key) == 1 then
      wrong = WRONG
    end
    if wrong then
      reply[to + 1], reply[to + 2], reply[to + 3], reply[to + 4] = wrong, 0, 0, 0
      return nil
    end
    local room, retry = count - cost, -1
    if room >= 0 then
      local wait = current > room and length + decay(current, room) or decay(previous, room - current)
      retry = wait > 0 and math.max(0, start + wait - now) or 0
    end
    reply[to + 1], reply[to + 2], reply[to + 3] = granted, used, retry
    reply[to + 4] = current > 0 and lives or previous > 0 and left or 0
  end
end
