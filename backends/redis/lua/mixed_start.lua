-- The driver of a plan without an id, which goes on in mixed.lua.
local steps = #KEYS

