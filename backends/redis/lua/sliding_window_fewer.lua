-- The first look of Log::fewer() in its place in a loop over windows, made without a function: from what is remembered
-- of a window to where its edge is now, if only a few units have left it.
    if count <= total and count > 0 and first <= edge then -- fewer()
      local high = count - 1
      local slot = next - high
      if slot < 0 then slot = slot + capacity end
      if newest <= edge then
        count, before, first = 0, newest, 0
      elseif high == 1 then
        count, before, first = 1, first, newest
      elseif high >= 2 and high <= size and capacity - slot >= 4 then
        local a, b, c, d = words(base + slot, 4)
        if a > edge then
          count, before, first = high, first, a
        elseif b > edge then
          count, before, first = high - 1, a, b
        elseif c > edge and high > 2 then
          count, before, first = high - 2, b, c
        elseif d > edge and high > 3 then
          count, before, first = high - 3, c, d
        end
      end
    end
