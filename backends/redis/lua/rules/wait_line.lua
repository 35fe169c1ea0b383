--@ piece wait_line_scan
-- The places at one instant, as one client sees them: the twin of Scan in src/rules/wait_line.cpp.
-- The words of place i start at 4 * i + 2: client, arrival, until, units.
local function wait_line_scan(places, granted, now, client, arrival, next)
  local mine, since, free, finish, before, clear_at, ahead, gone_at = -1, 0, -1, 0, 0, 0, 0, 0
  local idle_at = 0
  local first, first_since, last, last_client, last_since = 0, 0, -1, 0, 0
  local lives = false
  if places > Rule.max_places then
    is_corrupt = true
    places = 0
  end
  local raw
  if places > 0 then raw = bytes(2, 4 * places) end
  for i = 0, places - 1 do
    local who, came, till, units = struct.unpack('<i8i8i8i8', raw, 32 * i + 1)
    if who < 0 or who > word_limit or came < 0 or came > word_limit or
      till < 0 or till > word_limit or units < 0 or units > Rule.max_units then
      is_corrupt = true
    end
    if who == client and client ~= 0 then
      if mine >= 0 then is_corrupt = true end
      mine, since = i, came
      if till > now and till <= now + Rule.max_ttl then lives = true end
    elseif who == 0 or till <= now or till > now + Rule.max_ttl then
      free = i
    else
      finish = i + 1
      lives = true
      if till > idle_at then idle_at = till end
      if came < arrival or (came == arrival and who < client) then
        before = before + units
        if till > clear_at then clear_at = till end
      end
      if next == 0 or came < next or (came == next and who < client) then
        ahead = ahead + units
        if till > gone_at then gone_at = till end
      end
      if first == 0 or came < first_since or (came == first_since and who < first) then
        first, first_since = who, came
      end
      if last < 0 or came > last_since or (came == last_since and who > last_client) then
        last, last_client, last_since = i, who, came
      end
    end
  end
  if not lives then granted = 0 end
  return lives, granted, mine, since, free, finish, before, clear_at, ahead, gone_at, idle_at, first,
    last, last_client, last_since
end

-- When so few of those ahead are live that the turn is allowed.
local function wait_line_allowed_at(places, now, client, arrival, units, enough, clear_at)
  local ahead = {}
  local raw = bytes(2, 4 * places)
  for i = 0, places - 1 do
    local who, came, till, its = struct.unpack('<i8i8i8i8', raw, 32 * i + 1)
    if who ~= 0 and who ~= client and till > now and till <= now + Rule.max_ttl and
      (came < arrival or (came == arrival and who < client)) then
      ahead[#ahead + 1] = {till, its}
    end
  end
  table.sort(ahead, function(a, b) return a[1] < b[1] end)
  for i = 1, #ahead do
    units = units - ahead[i][2]
    if units <= enough then return ahead[i][1] end
  end
  return clear_at
end

-- hold(): leaves the client with a place that begins at `arrival`; says until when anybody lives.
local function wait_line_hold(places, granted, now, client, arrival, ttl, units, mine, free, finish,
    idle_at, last, last_client, last_since)
  local place = mine
  if place < 0 then place = free end
  if place < 0 and places < Rule.max_places then place = places end
  if place < 0 and (arrival < last_since or (arrival == last_since and client < last_client)) then
    place = last
  end
  if place < 0 then
    put(0, struct.pack('<i8i8', places, granted))
    return idle_at
  end
  local till = now + ttl
  if till > word_limit then till = word_limit end
  if place >= finish then finish = place + 1 end
  put(0, struct.pack('<i8i8', finish, granted))
  put(4 * place + 2, struct.pack('<i8i8i8i8', client, arrival, till, units))
  if till > idle_at then return till end
  return idle_at
end

--@ piece wait_line_check
-- What enter() and turn() are asked, in its place in a rule.
  if limit < 0 or limit > word_limit or client < 1 or client > word_limit or
    arrival < 1 or arrival > word_limit or ttl < Rule.min_ttl or ttl > Rule.max_ttl or
    units < 1 or units > Rule.max_units then
    return Errc.invalid_argument
  end

--@ piece wait_line_drop
-- The twin of drop() in src/rules/wait_line.cpp, in its place in a rule: the client's place is free.
    put(0, struct.pack('<i8i8', finish, granted))
    put(4 * mine + 2, struct.pack('<i8', 0))

--@ piece wait_line_answer
-- The twin of allowed() in src/rules/wait_line.cpp, in its place in a rule.
  local reset_after = idle_at - now
  if reset_after < 0 then reset_after = 0 end
  local gone_after = gone_at - now
  if gone_after < 0 then gone_after = 0 end
  return 1, limit, 0, reset_after, struct.pack('<i8i8i8i8', ahead, first, granted, gone_after)

--@ operation wait_line_enter(head[2] | limit, client, arrival, ttl, units)
-- The twin of WaitLineRule::enter in src/rules/wait_line.cpp.
--@ use wait_line_scan
--@ use wait_line_check
  local lives, granted, mine, since, free, finish, before, clear_at, ahead, gone_at, idle_at, first,
    last, last_client, last_since = wait_line_scan(head[1], head[2], now, client, arrival, arrival)
  idle_at = wait_line_hold(head[1], granted, now, client, arrival, ttl, units, mine, free, finish,
    idle_at, last, last_client, last_since)
--@ use wait_line_answer

--@ operation wait_line_turn(head[2] | limit, client, arrival, ttl, units, next, next_units, enough)
-- The twin of WaitLineRule::turn in src/rules/wait_line.cpp.
--@ use wait_line_scan
--@ use wait_line_check
  if next < 0 or next > word_limit or next_units < 1 or next_units > Rule.max_units or
    enough < 0 or enough > word_limit then
    return Errc.invalid_argument
  end
  local lives, granted, mine, since, free, finish, before, clear_at, ahead, gone_at, idle_at, first,
    last, last_client, last_since = wait_line_scan(head[1], head[2], now, client, arrival, next)
  if before > 0 and granted + before > enough then
    local at = clear_at
    if enough > granted then
      at = wait_line_allowed_at(head[1], now, client, arrival, granted + before, enough, clear_at)
    end
    return 0, 0, at - now, idle_at - now, struct.pack('<i8i8i8i8', before, first, granted, clear_at - now)
  end
  granted = granted + units
  if granted > word_limit or (next == 0 and not lives) then granted = 0 end
  if next ~= 0 then
    idle_at = wait_line_hold(head[1], granted, now, client, next, ttl, next_units, mine, free, finish,
      idle_at, last, last_client, last_since)
  elseif mine >= 0 then
--@ use wait_line_drop
  elseif finish > 0 then
    put(0, struct.pack('<i8i8', head[1], granted))
  end
--@ use wait_line_answer

--@ operation wait_line_leave(head[2] | limit, client, arrival)
-- The twin of WaitLineRule::leave in src/rules/wait_line.cpp.
--@ use wait_line_scan
  if limit < 0 or limit > word_limit or client < 1 or client > word_limit or
    arrival < 0 or arrival > word_limit then
    return Errc.invalid_argument
  end
  local lives, granted, mine, since, free, finish, before, clear_at, ahead, gone_at, idle_at, first =
    wait_line_scan(head[1], head[2], now, client, arrival, 0)
  if mine >= 0 and (arrival == 0 or arrival == since) then
--@ use wait_line_drop
  end
--@ use wait_line_answer

--@ operation wait_line_peek(head[2] | limit)
-- The twin of WaitLineRule::peek in src/rules/wait_line.cpp.
--@ use wait_line_scan
  if limit < 0 or limit > word_limit then return Errc.invalid_argument end
  local lives, granted, mine, since, free, finish, before, clear_at, ahead, gone_at, idle_at, first =
    wait_line_scan(head[1], head[2], now, 0, 0, 0)
--@ use wait_line_answer
