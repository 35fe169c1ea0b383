-- The twins of place() in src/rules/token_bucket_position.hpp and give() in shared_token_bucket_reserve.cpp, behind
-- shared_token_bucket_view.lua and `limit`; and what the bucket becomes when it is written.
  local new_level, new_stamp, new_spent = level, at, spent
  local function place(level, at)
    if level <= limit then return level, at end
    local over = level - limit
    local stamp = at + (over + -over % refill) / refill
    if stamp > 4503599627370496 then stamp = 4503599627370496 end -- word_limit
    level = level - (stamp - at) * refill
    if level < limit - period + 1 then level = limit - period + 1 end
    if level > limit then level = limit end
    return level, stamp
  end
  local function give(base, units)
    local ahead = at - base
    if ahead * refill > 4503599627370496 - level then return 0 end
    local left = level + ahead * refill
    local given = units
    if given > left then given = left end
    if given == 0 then return 0 end
    new_level, new_stamp = left - given, at
    if ahead > 0 then new_level, new_stamp = place(left - given, base) end
    if spent < 4503599627370496 then
      new_spent = spent - given
      if new_spent < 0 then new_spent = 0 end
      new_spent = new_spent + (at - new_stamp) * refill
      if new_spent < 0 then new_spent = 0 end
      if new_spent > 4503599627370496 then new_spent = 4503599627370496 end
    end
    return given
  end
