-- The twin of the kernel of token_bucket.reserve_some in src/rules/token_bucket_reserve.cpp.
local function token_bucket_reserve_some(first, second, now, capacity, refill, period, interval, full_at,
  longest, min_cost, cost)
  local max_wait, spends = 0, true
-- SHARED token_bucket_answer
end

local KIND, ARGUMENTS, DETAILS, decide = 18, '<i8i8i8i8i8i8i8i8', 3, token_bucket_reserve_some

