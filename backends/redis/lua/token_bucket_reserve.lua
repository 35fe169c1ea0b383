-- The twin of the kernel of token_bucket.reserve in src/rules/token_bucket_reserve.cpp.
local function token_bucket_reserve(first, second, now, capacity, refill, period, interval, full_at,
  longest, max_wait, cost)
  local min_cost, spends = cost, true
-- SHARED token_bucket_answer
end

local KIND, ARGUMENTS, DETAILS, decide = 18, '<i8i8i8i8i8i8i8i8', 3, token_bucket_reserve

