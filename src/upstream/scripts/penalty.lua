-- Penalties: a key that has been limited stays limited for a time, even when it has room again.
--
-- A key with a penalty, present or remembered, has a record. A string has the record in front of
-- the value. The value begins with the letter of the algorithm, and is that letter alone if nothing
-- is counted. A sorted set has the record as a member with score +inf, behind all other members.
--
-- A record is "p" and numbers separated by ":":
--
-- till  when the penalty ends, in us since 1970
-- span  length of the penalty when it began, in ms
-- last  length of the last penalty that grows, in ms
-- rest  how long after `till` the record is remembered, in ms
-- log   in a sorted set: until when the other members are needed, in us
--
-- A penalty that is further from its end than its length was left by a clock that went back. The
-- penalty is then cut to its length for good, even by a refused call.
--
-- A part (decide.lua) has the record of the present key as `record`, relative to now, with `left`,
-- the us until the penalty's end. `first` and `longest` are the penalty that follows a refusal, in
-- ms.

-- The functions of this file do not run if no penalty is requested or stored: readers of a value
-- check whether its first byte is 112, the letter p.

local made
local function penalties()
  if made then return made end
  local self = {}
  made = self

  local waits = tonumber(string.match(how, 'w(%d+)'))

  -- Returns ms, rounded up.
  local function ms_of(us)
    return (us + (-us) % 1000) / 1000
  end

  -- Returns for how many ms the key lives: 0 if it is absent, 2^42 if it has no expiry.
  function self.ttl(key)
    local ms = redis.call('PTTL', key)
    return ms == -1 and 2 ^ 42 or math.max(0, ms)
  end

  -- Returns the record, relative to now, or nil if the record has expired; and `log`. Nil and nil:
  -- the text is no record.
  function self.read(text)
    local till, span, last, rest, log = string.match(text, '^p(%d+):(%d+):(%d+):(%d+):?(%d*)')
    till, span, last, rest = tonumber(till), tonumber(span), tonumber(last), tonumber(rest)
    if not till then return nil, nil end
    local latest = now + span * 1000
    local record = { till = math.min(till, latest), span = span, last = last, rest = rest, is_cut = till > latest }
    record.left = math.max(0, record.till - now)
    return now < record.till + rest * 1000 and record or nil, tonumber(log) or now
  end

  -- Returns a penalty that begins now.
  function self.new(ms, last, rest)
    return { till = now + ms * 1000, span = ms, last = last, rest = rest, left = ms * 1000 }
  end

  -- Returns for how many ms a log is needed.
  function self.needs(log)
    return math.max(0, ms_of(log - now))
  end

  -- Returns for how many ms the record is remembered.
  local function lives(record)
    return ms_of(record.till + record.rest * 1000 - now)
  end

  local function text_of(record)
    return format('p%d:%d:%d:%d', record.till, record.span, record.last, record.rest)
  end

  -- Returns the value behind the record, nil if that value is the letter alone; and the record.
  function self.unwrap(value, letter)
    local behind = string.match(value, '^p[%d:]+()')
    if not behind then return value, nil end
    local inner = string.sub(value, behind)
    return inner ~= letter and inner or nil, (self.read(value))
  end

  -- Makes store() put the part's record in front of the next value, in place of `value`.
  function self.put_front(part, value)
    local letter, record = part.letter, part.record
    if not letter then return end -- a sorted set
    front = { value = value }
    function front.put(new, ms)
      if not record then return new, ms end
      if new == '' or ms == '0' then new, ms = letter, 0 end
      return text_of(record) .. new, format('%d', math.max(tonumber(ms), lives(record)))
    end
  end

  -- Returns how many of the calls that fit pass.
  function self.grant(record, fitting)
    return record.left > 0 and not is_forced and 0 or fitting
  end

  -- True if a refused call waits until another call passes. `part` has been charged.
  local function can_wait(part)
    if not waits then return false end
    if part.retry then return part.retry() <= waits end
    local told, longest = {}, 0
    part.tell(0, told, 0)
    for r = 3, part.width, 3 do
      longest = told[r] < 0 and math.huge or math.max(longest, told[r])
    end
    return longest <= waits
  end

  -- Sets the record after `granted` of n tries have passed. Returns whether a write is needed.
  function self.follow(part, granted, n)
    local record, first, longest = part.record, part.first, part.longest
    if peek then return false end
    if record and record.left > 0 or not first or granted > n - times or can_wait(part) then
      return record and record.is_cut
    end
    local last, rest = 0, 0
    if record then last, rest = record.last, record.rest end
    if longest > first then
      local ms = math.min(math.max(2 * last, first), longest)
      part.record = self.new(ms, ms, longest)
    else
      part.record = self.new(first, last, rest)
    end
    return true
  end

  -- Replaces the first integer of a key under a penalty by a text: that integer, the us left, and
  -- the number granted.
  function self.tell(record, reply, to, granted)
    if record.left > 0 then reply[to + 1] = format('%d %d %d', reply[to + 1], record.left, granted) end
  end

  -- Replaces `mark`, a member of a sorted set, by a record; without a record, only removes `mark`.
  -- Returns an error, or nil.
  function self.mark(key, mark, record, log)
    local new = record and format('%s:%d', text_of(record), log)
    local done = new and new ~= mark and pcall('ZADD', key, '+inf', new)
    if type(done) == 'table' then return failure(done) end
    done = mark and new ~= mark and pcall('ZREM', key, mark)
    if type(done) == 'table' then return failure(done) end
    local ms = math.max(ms_of(log - now), record and lives(record) or 0)
    redis.call('PEXPIRE', key, format('%d', ms))
  end

  -- Reads the penalty that follows a refusal of the part from `word`: pN:M.
  function self.note(part, word)
    local first, longest = string.match(word, 'p(%d+):(%d+)')
    part.first, part.longest = tonumber(first), tonumber(longest)
  end

  return self
end

