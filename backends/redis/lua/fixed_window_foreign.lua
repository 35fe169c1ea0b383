-- The twin of foreign() in src/rules/fixed_window.cpp, with share(), window_at() and blocked(): another
-- window than the present one, [from, to), or a block is stored and was not over before it began. Returns the
-- window that a grant is of, what is used of it, when a cost that does not fit now will, and when
-- nothing will be used any more.
local function fixed_window_foreign(last, stored, code, now, limit, width, b0, b1, b2, b3, b4, cost,
  from, to)
  local function window_at(at)
    if width > 0 then
      if at < b0 then return 0, b0 end
      local begin = at - (at - b0) % width
      return begin, begin + width
    end
    if at < b0 or at >= b4 then return 0, 0 end
    if at >= b3 then return b3, b4 end
    if at >= b2 then return b2, b3 end
    if at >= b1 then return b1, b2 end
    return b0, b1
  end
  if code == 417 then -- blocked()
    if last <= now then return from, to, stored, to, to end
    local begin, till = window_at(last)
    local clear, fits_at = last, last
    if stored > 0 and begin < last and last < till then
      clear = till
      if stored + cost > limit then fits_at = till end
    end
    return from, to, limit + 1, fits_at, clear
  end
  local function share(from, to, at)
    if at == from then return 0 end
    local rest, width = to - at, to - from
    if width > 4398046511104 then -- 2^42
      rest = (rest - rest % 1024) / 1024
      width = (width + -width % 1024) / 1024
    end
    -- limit - floor(limit * rest / width), in parts of ten bits where the product would leave the
    -- whole numbers.
    local product = limit * rest
    if product <= 4503599627370496 then return limit - (product - product % width) / width end
    local quotient, remainder, digits = 0, 0, limit
    for part = 4, 0, -1 do
      local unit = 1024 ^ part
      local digit = (digits - digits % unit) / unit
      digits = digits - digit * unit
      local sum = remainder * 1024 + digit * rest
      remainder = sum % width
      quotient = quotient * 1024 + (sum - remainder) / width
    end
    return limit - quotient
  end
  local unit = 2 ^ ((code - code % 8) / 8)
  local top = (8 + code % 8) * unit
  local widest = (top + -top % 8) / 8
  local forgotten = last + widest
  if last <= now then
    if now >= forgotten then return from, to, 0, to, to end
    local clear = to
    if clear > forgotten then clear = forgotten end
    return from, to, share(from, to, last), clear, clear
  end

  local begin, till = window_at(last - 1)
  local stored_till, wide = till, 8 * (till - begin)
  if till > 4503599627370496 then stored_till = 4503599627370496 end -- word_limit
  local reach = now + 60000000 -- max_ahead, us
  local set_back = last - widest > reach
  if last == stored_till and wide <= top and wide > top - unit then
    if begin <= reach then return begin, till, stored, till, till end
    set_back = true
  end
  if set_back then
    if stored > limit - cost then stored = limit - cost end
    return from, to, stored, to, to
  end

  local next_from, next_to = window_at(last)
  local left, clear = 0, last
  if next_from < last and last < next_to then
    left, clear = share(next_from, next_to, last), next_to
    if clear > forgotten then clear = forgotten end
  end
  local fits_at = clear
  if left + cost <= limit then fits_at = last end
  if to < last and stored + cost <= limit then fits_at = to end
  return from, to, stored + share(from, to, now), fits_at, clear
end

