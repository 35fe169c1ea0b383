-- The twin of moment() in src/rules/token_bucket_reserve.cpp in its place in a rule, with shape_of(),
-- check_shape() and first_level(): from `first`, `second` and `charge` to limit, at, level and closed.
  local limit = capacity * period
  if interval < 1 or interval > 35184372088832 or full_at < 0 or full_at > 4503599627370496 or
    longest < 0 or longest > 3600000000 or limit >= 2251799813685248 or
    (longest + interval) * refill > 4503599627370496 - limit then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end

  local at, level, closed = now - now % interval, (first - first % 2) / 2, false
  if second > now + longest then
    if level > limit - charge then level = limit - charge end
  elseif second > at then
    at = second + -second % interval
    if at > 4503599627370496 then at = 4503599627370496 end -- word_limit
    closed = first % 2 == 1
  else
    local elapsed = at - second
    level = level - elapsed * refill
    if level < 0 then level = 0 end
    local full_after = (limit + -limit % refill) / refill
    if level == 0 and full_at > at and
      (elapsed >= full_after + interval or (first == 0 and second == 0)) then
      level = (full_at - at) * refill
      if full_at - at > full_after + longest then level = limit - charge end
    end
  end
