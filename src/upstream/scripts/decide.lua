-- How calls on one key are decided by one algorithm. An algorithm is a function of the place in ARGV where its numbers
-- begin, and makes a part:
--   behind   the place in ARGV behind its numbers
--   width    how many integers it tells of a key
--   is_text  what it stores is a string
--   letter   that begins with this
--   retry()  after how many us one more call would pass, behind charge(); nil: it tells them, at each third place
--   first, longest, record  of penalties: penalty.lua. Where it is no string look() finds the record, and write() writes it
-- and, in this order, for one key after the other:
--   look(key, value, n)      how many of n equal calls fit, where fetch() says `value`. nil: it is somebody else's key, or
--                            there is an error, which ends the whole script
--   charge(n, granted, key)  what n calls change, of which so many are granted: whether there is something to be written,
--                            and the text of an error where it cannot be. Nothing is written yet
--   write(key, value)        writes it: nil, WRONG, or an error that ends the whole script
--   check(key)               an error if that takes a command that Redis does not let us use; nil: it is one command
--   tell(granted, reply, to) puts its integers behind reply[to]; zeros without `granted`
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

-- The usual case of an algorithm, where one is written for speed (usual_*.lua): decides n calls on a key as decide() does.
-- True: it is not the usual case, and nothing has been done.
local usual

