-- The twin of shared_moment() in src/rules/shared_token_bucket_view.hpp, in its place in a rule: from head, now
-- and keep_alive to the bucket at one instant. No quota if the version is 0. If the stamp lies too far ahead, the
-- bucket is as it was written: who needs to know that (given_up) asks again.
  local version, capacity, refill, period, level, spent, stamp =
    head[1], head[2], head[3], head[4], head[5], head[6], head[7]
  local at = now
  if version == 0 or now >= stamp + keep_alive then
    version = 0
  elseif capacity < 1 or refill < 1 or refill >= 4503599627370496 or period < 1 or
    capacity * period > 4503599627370496 - refill then
    corrupt()
    version = 0
  elseif stamp <= now + 60000000 then -- max_ahead, us
    if stamp > at then at = stamp end
    local drained = (at - stamp) * refill
    level = level - drained
    if level < 0 then level = 0 end
    if spent < 4503599627370496 then -- more than can be counted does not drain
      spent = spent - drained
      if spent < 0 then spent = 0 end
    end
  end
