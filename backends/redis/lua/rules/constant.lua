--@ piece constant_check
-- The twin of the beginning of decide() in src/rules/constant.cpp in its place in a rule, with check(): ends the rule
-- if it refuses.
  if cost < 0 or least < 0 then return Errc.invalid_cost end
  if cost > word_limit then return Errc.cost_exceeds_capacity end
  if (limit ~= 0 and limit ~= word_limit) or least > cost or wait < 0 or wait > word_limit then
    return Errc.invalid_argument
  end
  local granted = cost
  if granted > limit then granted = limit end
  if granted < least then return 0, 0, word_limit, 0 end

--@ operation constant_acquire(first, second | limit, cost, least, wait)
-- The twin of acquire() in src/rules/constant.cpp. Writes nothing.
--@ use constant_check
  return 1, limit, 0, 0, nil, nil, struct.pack('<i8i8i8i8', granted, 0, 0, word_limit)

--@ operation constant_peek(first, second | limit, cost, least, wait)
-- The twin of peek() in src/rules/constant.cpp. Writes nothing.
--@ use constant_check
  return 1, limit, 0, 0
