-- How one algorithm decides the calls on one key. An algorithm is a function of the index in ARGV
-- at which its numbers begin. The function returns a part:
--
-- behind   the index in ARGV behind the part's numbers
-- width    number of integers that the part returns for a key
-- is_text  the part stores a string
-- letter   the first byte of that string
-- retry()  the us after which one more call would pass, after charge(); nil: tell() has the times,
--          as each third integer
-- first, longest, record  of penalties: penalty.lua. Without a string look() finds the record, and
--          write() writes the record.
--
-- For each key these functions are called in this order:
--
-- look(key, value, n)      returns how many of n equal calls fit, if fetch() returned `value`. nil:
--                          the key is not weir's; a second result is an error that ends the script
-- charge(n, granted, key)  computes the state after n calls, of which `granted` passed. Returns
--                          whether a write is needed, and the text of an error if no write is
--                          possible. Writes nothing.
-- write(key, value)        writes the state. Returns nil, WRONG, or an error that ends the script
-- check(key)               returns an error if Redis denies a command of write(). check is nil
--                          if write() has one command only
-- tell(granted, reply, to) puts the part's integers behind reply[to]; zeros without `granted`
local function decide(part, key, value, n, reply, to)
  local inner = value
  part.record = nil
  if value and string.byte(value) == 112 then inner, part.record = penalties().unwrap(value, part.letter) end
  local granted, wrong = part.look(key, inner, n)
  if wrong then return wrong end
  local changes
  if granted then
    if part.record then granted = penalties().grant(part.record, granted) end
    changes, wrong = part.charge(n, granted, key)
    if part.first or part.record then changes = penalties().follow(part, granted, n) or changes end
  end
  if not granted then
    wrong = WRONG
  elseif changes and not wrong then
    wrong = part.check and part.check(key)
    if wrong then return wrong end
    if part.record or inner ~= value then penalties().put_front(part, value) end
    wrong = part.write(key, inner)
    front = nil
    if type(wrong) == 'table' then return wrong end
  elseif part.is_text and not value and pcall('EXISTS', key) == 1 then
    wrong = WRONG
  end
  part.tell(not wrong and granted, reply, to)
  if wrong then
    reply[to + 1] = wrong
  elseif part.record then
    penalties().tell(part.record, reply, to, granted)
  end
end

-- A fast path for the usual case of an algorithm (usual_*.lua): decides n calls on a key as
-- decide() does. Returns true if the case is not usual; nothing is done then.
local usual

