-- The twin of decide_reset() in src/rules/utilization.cpp.
local function utilization_reset(first, last, now, limit)
  if limit ~= 1000000 then return -38, 0, 0, 0 end -- Errc::invalid_argument
  if first ~= 0 or last ~= 0 then return 1, 1000000, 0, 0, 0, 0 end
  return 1, 1000000, 0, 0
end

local KIND, ARGUMENTS, DETAILS, decide = 9, '<i8', 0, utilization_reset
