
-- What the short cut has left over goes on as any plan on cells.
local message = ARGV[1]
ARGV[1] = string.sub(message, 1, 8)
for i = 1, #KEYS do
  local from = 56 * i - 47
  ARGV[2 * i] = '\0' .. string.sub(message, from, from + 47) -- the id of token_bucket_take
  ARGV[2 * i + 1] = string.format('%d', struct.unpack('<i8', message, from + 48))
end

