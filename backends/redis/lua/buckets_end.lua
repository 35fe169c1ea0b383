
-- What the short cut has left over goes on as any plan on cells.
local message = ARGV[1]
ARGV[1] = string.sub(message, 1, 8)
for i = 1, #KEYS do
  local from = 40 * i - 31
  ARGV[2 * i] = '\0' .. string.sub(message, from, from + 23) .. string.rep('\0', 8) ..
    string.sub(message, from + 24, from + 31) -- id 0: token_bucket_take
  ARGV[2 * i + 1] = string.format('%d', struct.unpack('<i8', message, from + 32))
end

