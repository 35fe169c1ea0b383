--@ piece fixed_window_check
-- The twins of are_windows(), stored_of() and holds() in src/rules/fixed_window.cpp, in their place in a rule:
-- ends it if the calendar or the state cannot be, or if no window of the calendar holds `now`.
  if limit > Rule.max_limit or width < 0 or width > Rule.max_width or b0 < 0 or
    (width > 0 and b0 >= width) or
    (width == 0 and (b1 < b0 or b2 < b1 or b3 < b2 or b4 < b3 or b4 > word_limit)) then
    return Errc.invalid_argument
  end
  if packed > 2 * Rule.max_used + 1 then return Errc.corrupt_state end
  if width == 0 and (now < b0 or now >= b4) then return Errc.outside_calendar end

--@ piece fixed_window_view
-- The twins of view_at() and window_at() in src/rules/fixed_window.cpp, in their place in a rule: from the
-- state, the calendar, limit, cost and `now` to the window that a request is decided in, [from, to), what is
-- stored with a grant as its `begin`, what is used of it, and whether a block has closed it until `begin`.
  local function window_at(at)
    if at < b0 then return 0, b0 end
    if width > 0 then
      local from = at - (at - b0) % width
      return from, from + width
    end
    if at < b1 then return b0, b1 end
    if at < b2 then return b1, b2 end
    if at < b3 then return b2, b3 end
    if at < b4 then return b3, b4 end
    return b4, at + 1
  end

  local is_block, at = packed % 2, now
  local used = (packed - is_block) / 2
  if begin > now then at = begin end
  local from, to = window_at(at)
  if is_block == 0 and from > now + Rule.max_ahead then
    from, to = window_at(now)
    begin = from
    if used > limit - cost then used = limit - cost end
  elseif begin < from then
    begin, used = from, 0
  end
  local closed = is_block == 1 and now < begin

--@ piece fixed_window_standing
-- The twin of standing() in src/rules/fixed_window.cpp, in its place in a rule: what remains, and when the
-- window is as good as new.
  local left, clear = limit - used, 0
  if left < 0 or closed then left = 0 end
  if used > 0 then clear = to - now elseif closed then clear = begin - now end

--@ piece fixed_window_decide
-- The twin of decided() in src/rules/fixed_window.cpp, in its place in a rule: ends it if it refuses.
  if cost < 0 then return Errc.invalid_cost end
  if cost > limit then return Errc.cost_exceeds_capacity end
--@ use fixed_window_check
--@ use fixed_window_view
--@ use fixed_window_standing
  local want = used + cost
  if closed or want > limit then
    local fits_at = begin
    if want > limit then fits_at = to end
    return 0, left, fits_at - now, clear
  end

--@ operation fixed_window_acquire(begin, packed | limit, width, b0, b1, b2, b3, b4, cost)
-- The twin of acquire() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and, if the state changes, its two words.
--@ use fixed_window_decide
  if cost == 0 then return 1, left, 0, clear end
  return 1, limit - want, 0, to - now, begin, 2 * want

--@ operation fixed_window_peek(begin, packed | limit, width, b0, b1, b2, b3, b4, cost)
-- The twin of peek() in src/rules/fixed_window.cpp: fixed_window_acquire without what that writes.
--@ use fixed_window_decide
  return 1, left, 0, clear

--@ operation fixed_window_refund(begin, packed | limit, from, to, cost)
-- The twin of refund() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after, and if the state changes, its two words, and packed: the units given back.
  if cost < 0 or cost > word_limit then return Errc.invalid_cost end
  if limit < 0 or limit > Rule.max_limit or from < 0 or from > to or to > word_limit then
    return Errc.invalid_argument
  end
  if packed > 2 * Rule.max_used + 1 then return Errc.corrupt_state end

  local is_block = packed % 2
  local used = (packed - is_block) / 2
  local is_stored = from <= begin and begin < to
  local is_present = now < to and from <= now + Rule.max_ahead
  if not (is_stored and is_present and used > 0) then return 0, 0, 0, 0 end
  local given = cost
  if given > used then given = used end
  used = used - given
  local closed = is_block == 1 and now < begin
--@ use fixed_window_standing
  if given == 0 then return 1, left, 0, clear end
  return 1, left, 0, clear, begin, 2 * used + is_block, struct.pack('<i8', given)

--@ operation fixed_window_reset(begin, packed | limit)
-- The twin of reset() in src/rules/fixed_window.cpp: same names, same order. Returns status,
-- remaining, retry_after, reset_after and the two words of the new state.
  if limit < 0 or limit > Rule.max_limit then return Errc.invalid_argument end
  if packed > 2 * Rule.max_used + 1 then return Errc.corrupt_state end
  return 1, limit, 0, 0, 0, 0

--@ operation fixed_window_adjust(begin, packed | limit, width, b0, b1, b2, b3, b4, amount)
-- The twin of adjust() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after, if the state changes, its two words, and packed: the units charged or refunded.
  if amount < -word_limit or amount > word_limit then return Errc.invalid_cost end
  if limit < 0 then return Errc.invalid_argument end
  local cost = 0
--@ use fixed_window_check
--@ use fixed_window_view
  local new_used, new_begin, new_packed = used + amount, nil, nil
  if new_used < 0 then new_used = 0 end
  if new_used > Rule.max_used then new_used = Rule.max_used end
  if closed and now < from then new_used = used end
  if new_used ~= used then
    new_begin, new_packed = begin, 2 * new_used
    if closed then new_packed = new_packed + 1 end
  end
  local changed = new_used - used
  if changed < 0 then changed = -changed end
  used = new_used
--@ use fixed_window_standing
  return 1, left, 0, clear, new_begin, new_packed, struct.pack('<i8', changed)

--@ operation fixed_window_block(begin, packed | limit, width, b0, b1, b2, b3, b4, span)
-- The twin of block() in src/rules/fixed_window.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and, if the state changes, its two words.
  if span < 0 or span > Rule.max_block or limit < 1 then return Errc.invalid_argument end
  local cost = 0
--@ use fixed_window_check
  local function view_at(begin, packed, now)
--@ use fixed_window_view
    return from, to, begin, used, closed
  end
  local till, new_begin, new_packed = now + span, nil, nil -- `until` is a word of Lua's
  if till > word_limit then till = word_limit end
  if span > 0 and (packed % 2 == 0 or begin < till) then
    local last_from, _, _, last_used = view_at(begin, packed, till)
    begin, packed = till, 2 * last_used + 1
    if begin < last_from then begin = last_from end
    new_begin, new_packed = begin, packed
  end
  local from, to, used, closed
  from, to, begin, used, closed = view_at(begin, packed, now)
--@ use fixed_window_standing
  return 1, left, 0, clear, new_begin, new_packed
