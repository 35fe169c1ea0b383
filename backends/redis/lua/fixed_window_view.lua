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
  if is_block == 0 and from > now + 60000000 then -- max_ahead, us
    from, to = window_at(now)
    begin = from
    if used > limit - cost then used = limit - cost end
  elseif begin < from then
    begin, used = from, 0
  end
  local closed = is_block == 1 and now < begin

