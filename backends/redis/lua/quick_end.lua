
-- What the short cut has left over goes on as any step on a wide state.
seen = raw
local status
