-- The twin of Windows in src/rules/sliding_window_find.hpp in its place in a rule: from `table` to
-- `least`, `most` and `longest`.
  local least, most = 4503599627370496, 0
  longest = 0
  for i = 1, #table, 2 do
    local window, span = table[i], table[i + 1] or 0
    if window < 1 or window > 65536 or span < 1 or span > 31622400000000 then
      return -38, 0, 0, 0 -- Errc::invalid_argument
    end
    if window < least then least = window end
    if window > most then most = window end
    if span > longest then longest = span end
  end
  if most == 0 or #table > 16 then return -38, 0, 0, 0 end -- Errc::invalid_argument
