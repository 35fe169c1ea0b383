-- The places at one instant, as one client sees them: the twin of Scan in src/rules/wait_line.cpp.
-- The words of place i start at 3 * i + 1: client, arrival, until.
local function wait_line_scan(places, now, client, arrival, next)
  local mine, since, free, finish, before, ahead, clear_at, idle_at = -1, 0, -1, 0, 0, 0, 0, 0
  local first, first_since, last, last_client, last_since = 0, 0, -1, 0, 0
  if places > 256 then -- max_places
    corrupt()
    places = 0
  end
  local raw
  if places > 0 then raw = bytes(1, 3 * places) end
  for i = 0, places - 1 do
    local who, came, till = struct.unpack('<i8i8i8', raw, 24 * i + 1)
    if who < 0 or who > 4503599627370496 or came < 0 or came > 4503599627370496 or -- word_limit
      till < 0 or till > 4503599627370496 then
      corrupt()
    end
    if who == client and client ~= 0 then
      if mine >= 0 then corrupt() end
      mine, since = i, came
    elseif who == 0 or till <= now or till > now + 600000000 then -- max_ttl, us
      free = i
    else
      finish = i + 1
      if till > idle_at then idle_at = till end
      if came < arrival or (came == arrival and who < client) then
        before = before + 1
        if till > clear_at then clear_at = till end
      end
      if next == 0 or came < next or (came == next and who < client) then ahead = ahead + 1 end
      if first == 0 or came < first_since or (came == first_since and who < first) then
        first, first_since = who, came
      end
      if last < 0 or came > last_since or (came == last_since and who > last_client) then
        last, last_client, last_since = i, who, came
      end
    end
  end
  return mine, since, free, finish, before, ahead, clear_at, idle_at, first, last, last_client, last_since
end

-- hold(): leaves the client with a place that begins at `arrival`; says until when anybody lives.
local function wait_line_hold(places, now, client, arrival, ttl, mine, free, finish, idle_at, last,
    last_client, last_since)
  local place = mine
  if place < 0 then place = free end
  if place < 0 and places < 256 then place = places end -- max_places
  if place < 0 and (arrival < last_since or (arrival == last_since and client < last_client)) then
    place = last
  end
  if place < 0 then return idle_at end
  local till = now + ttl
  if till > 4503599627370496 then till = 4503599627370496 end -- word_limit
  if place >= finish then finish = place + 1 end
  put(0, struct.pack('<i8', finish))
  put(3 * place + 1, struct.pack('<i8i8i8', client, arrival, till))
  if till > idle_at then return till end
  return idle_at
end
