-- The twin of the kernel of shared_token_bucket.set in src/rules/shared_token_bucket.cpp: same names, same
-- order, with moment(), inherited(), units() and level_of() in their place.
-- For whole numbers (x - x % y) / y is the floor of x / y, and (x + -x % y) / y its ceiling.
local function shared_token_bucket_set(head, _, now, new_capacity, new_refill, new_period, keep_alive,
  inheritance, if_absent)
  if new_capacity < 1 or new_refill < 1 or new_refill >= 4503599627370496 or new_period < 1 or
    new_capacity * new_period > 4503599627370496 - new_refill or
    keep_alive < 1 or keep_alive > 2251799813685248 or
    (keep_alive - 1) * new_refill < new_capacity * new_period or
    inheritance < 0 or inheritance > 3 or if_absent < 0 or if_absent > 1 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
-- SHARED shared_token_bucket_view

  local is_new = 0
  if version == 0 or if_absent == 0 then
    is_new = 1
    local new_version, new_level, new_spent = 1, 0, 0
    if version ~= 0 then
      if version < 4503599627370496 then new_version = version + 1 end
      local free = capacity - (level + -level % period) / period
      local next_free = new_capacity -- reset
      if inheritance == 0 then -- as_is
        next_free = free
      elseif inheritance == 1 then -- proportional
        next_free = free
        if free > 0 then
          -- free * new_capacity / capacity, bit by bit of new_capacity: it has up to 104 bits.
          local quotient, rest = 0, 0
          local bit = 4503599627370496
          while bit >= 1 do
            quotient, rest = quotient * 2, rest * 2
            if rest >= capacity then
              quotient, rest = quotient + 1, rest - capacity
            end
            if new_capacity % (bit * 2) >= bit then
              rest = rest + free
              if rest >= capacity then
                quotient, rest = quotient + 1, rest - capacity
              end
            end
            bit = bit / 2
          end
          next_free = quotient
        end
      elseif inheritance == 2 then -- additive
        next_free = free + new_capacity - capacity
      end
      local most = free
      if spent < 4503599627370496 then
        most = capacity
        if new_capacity > most then most = new_capacity end
        most = most - (spent + -spent % period) / period
      end
      if at > now and free <= 0 and next_free > 0 then next_free = 0 end
      if next_free > new_capacity then next_free = new_capacity end
      if next_free > most then next_free = most end

      local tokens = new_capacity - next_free
      new_level = tokens * new_period
      local most_tokens = (4503599627370496 - 4503599627370496 % new_period) / new_period
      if tokens > most_tokens then new_level = 4503599627370496 end
      local lasting = (keep_alive - 1) * new_refill
      if new_level > lasting then new_level = lasting end
      new_spent = spent
      if spent < 4503599627370496 then
        tokens = (spent + -spent % period) / period
        new_spent = tokens * new_period
        if tokens > most_tokens then new_spent = 4503599627370496 end
      end
    end
    version, capacity, refill, period = new_version, new_capacity, new_refill, new_period
    level, spent = new_level, new_spent
    put(0, struct.pack('<i8i8i8i8i8i8i8', version, capacity, refill, period, level, spent, at))
  end

  local free = capacity * period - level
  if free < 0 then free = 0 end
  return 1, (free - free % period) / period, 0, at - now + (level + -level % refill) / refill,
    struct.pack('<i8i8', version, is_new)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 6, '<i8i8i8i8i8i8', 7, 2, shared_token_bucket_set

