-- The twin of LeaseTable::find() in src/rules/lease_table.hpp in its place in a rule: the place of
-- the live lease with this id, and its words; it was told that it is `slot`, or nothing.
  local found = 0
  local held, next, ends, prev, a, b, c, token
  if slot ~= 0 then
    if slot <= slots then
      held, next, ends, prev, a, b, c, token = words(8 * slot + 3, 8)
      if a == high and b == middle and c == low and held > 0 and ends > at then found = slot end
    end
  else
    local raw -- the words of 32 places
    for i = 1, slots do
      local offset = (i - 1) % 32
      if offset == 0 then
        local many = slots - i + 1
        if many > 32 then many = 32 end
        raw = bytes(8 * i + 3, 8 * many)
      end
      local begin = struct.unpack('<i8', raw, 64 * offset + 33)
      if begin < 0 or begin > 4503599627370496 then corrupt() end -- word_limit
      if begin == high then
        held, next, ends, prev, a, b, c, token = words(8 * i + 3, 8)
        if b == middle and c == low and held > 0 and ends > at then
          found = i
          break
        end
      end
    end
  end
