-- The twin of WaitLineRule::enter in src/rules/wait_line.cpp, behind wait_line_scan.lua.
local function wait_line_enter(head, _, now, limit, client, arrival, ttl)
  if limit < 0 or limit > 4503599627370496 or client < 1 or client > 4503599627370496 or
    arrival < 1 or arrival > 4503599627370496 or ttl < 1000 or ttl > 600000000 then
    return -38, 0, 0, 0 -- Errc::invalid_argument
  end
  local mine, since, free, finish, before, ahead, clear_at, idle_at, first, last, last_client,
    last_since = wait_line_scan(head[1], now, client, arrival, arrival)
  idle_at = wait_line_hold(head[1], now, client, arrival, ttl, mine, free, finish, idle_at, last,
    last_client, last_since)
  local reset_after = idle_at - now
  if reset_after < 0 then reset_after = 0 end
  return 1, limit, 0, reset_after, struct.pack('<i8i8', ahead, first)
end

local KIND, ARGUMENTS, HEAD, DETAILS, decide = 13, '<i8i8i8i8', 1, 2, wait_line_enter
