-- The twin of open() in src/rules/gate.cpp: same names, same order. Returns status, remaining,
-- retry_after, reset_after and the new until and mark.
local function gate_open(until_, mark, now, limit)
  if limit ~= 1 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  return 1, 1, 0, 0, 0, 0
end

local KIND, ARGUMENTS, DETAILS, decide = 10, '<i8', 0, gate_open

