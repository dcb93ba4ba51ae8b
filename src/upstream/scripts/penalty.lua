-- Penalties: who has been limited stays limited for a time, whatever drains.
--
-- A key that has one, or of which one is known, has a record of it. A string has it in front of its value, which begins with
-- the letter of its algorithm, and is that letter alone where nothing is counted. A sorted set has it as a member that is
-- scored +inf, behind all others.
--
-- A record: "p", then numbers with ":" between them: `till`, when it ends, in us since 1970; `span`, how long it was when it
-- began, in ms; `last`, the ms of the last one that was of the growing kind; `rest`, for how many ms behind `till` that is
-- known. In a sorted set also `log`: until when, in us, the other members are needed. One that is further from its end
-- than it was long comes from a clock that went back, and is cut to that for good, even by a call that is refused.
--
-- A part (decide.lua) has as `record` what is known of the key that is looked at, as seen from now, with `left`, the us until
-- its end; and as `first` and `longest` what follows when it refuses, in ms.

-- Where nothing is said or known of one none of this is made: whoever reads a value looks for its first byte, 112.

local made
local function penalties()
  if made then return made end
  local self = {}
  made = self

  local waits = tonumber(string.match(how, 'w(%d+)'))

  -- ms, rounded up.
  local function ms_of(us)
    return (us + (-us) % 1000) / 1000
  end

  -- For how many ms the key is there: 0 where it is not, for ever where somebody has made it so.
  function self.ttl(key)
    local ms = redis.call('PTTL', key)
    return ms == -1 and 2 ^ 42 or math.max(0, ms)
  end

  -- As seen from now, nil where it is over; and `log`. Nil and nil: it is no record.
  function self.read(text)
    local till, span, last, rest, log = string.match(text, '^p(%d+):(%d+):(%d+):(%d+):?(%d*)')
    till, span, last, rest = tonumber(till), tonumber(span), tonumber(last), tonumber(rest)
    if not till then return nil, nil end
    local latest = now + span * 1000
    local record = { till = math.min(till, latest), span = span, last = last, rest = rest, is_cut = till > latest }
    record.left = math.max(0, record.till - now)
    return now < record.till + rest * 1000 and record or nil, tonumber(log) or now
  end

  -- A penalty that begins now.
  function self.new(ms, last, rest)
    return { till = now + ms * 1000, span = ms, last = last, rest = rest, left = ms * 1000 }
  end

  -- For how many ms a log is needed.
  function self.needs(log)
    return math.max(0, ms_of(log - now))
  end

  -- For how many ms it is known.
  local function lives(record)
    return ms_of(record.till + record.rest * 1000 - now)
  end

  local function text_of(record)
    return format('p%d:%d:%d:%d', record.till, record.span, record.last, record.rest)
  end

  -- What stands behind the record of a value, nil for no more than the letter; and the record.
  function self.unwrap(value, letter)
    local behind = string.match(value, '^p[%d:]+()')
    if not behind then return value, nil end
    local inner = string.sub(value, behind)
    return inner ~= letter and inner or nil, (self.read(value))
  end

  -- The next value is stored with the part's record in front of it, where `value` was.
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

  -- How many calls pass, of those for which there is room.
  function self.grant(record, fitting)
    return record.left > 0 and not is_forced and 0 or fitting
  end

  -- Does who is refused wait until another call passes? `part` has been charged.
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

  -- What is known once `granted` of n tries have been let through: whether there is something to be written.
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

  -- In place of the first number of a key under a penalty: it, the us that are left, and what was granted.
  function self.tell(record, reply, to, granted)
    if record.left > 0 then reply[to + 1] = format('%d %d %d', reply[to + 1], record.left, granted) end
  end

  -- Puts a record, or none, into a sorted set in the place of `mark`, a member: an error, or nil.
  function self.mark(key, mark, record, log)
    local new = record and format('%s:%d', text_of(record), log)
    local done = new and new ~= mark and pcall('ZADD', key, '+inf', new)
    if type(done) == 'table' then return failure(done) end
    done = mark and new ~= mark and pcall('ZREM', key, mark)
    if type(done) == 'table' then return failure(done) end
    local ms = math.max(ms_of(log - now), record and lives(record) or 0)
    redis.call('PEXPIRE', key, format('%d', ms))
  end

  -- `word` says what follows when the part refuses: pN:M.
  function self.note(part, word)
    local first, longest = string.match(word, 'p(%d+):(%d+)')
    part.first, part.longest = tonumber(first), tonumber(longest)
  end

  return self
end

