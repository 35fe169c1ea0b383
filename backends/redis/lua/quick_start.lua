-- The driver of one step on a wide state whose rule has a short cut: a fragment that answers what
-- nearly all requests meet without the functions and tables of wide.lua, and leaves the rest, and
-- every doubt, to the rule itself, which stands behind it. Messages and replies are those of
-- wide_step.lua.
local raw = redis.pcall('GETRANGE', KEYS[1], '0', '256')
