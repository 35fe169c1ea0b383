-- The twin of token_bucket::level_of() in a rule: `level` is the word, then the level in units of
-- `period`. unit_in(), is_promise(), foreign_level() and period_of() are in place: the unit of the word is
-- word_unit, what is added to a promise is `promise`.
  local word, scale, word_unit, promise = level, 8192, 0, 4096
  if unit == 0 then scale, promise = 2, 0 end
  if word % 2 == 1 then word_unit = word % 4096 end
  local promised = word_unit > 0 and word % 8192 >= 4096
  if word_unit ~= unit then
    if word_unit == 0 then
      if word > 0 then level = limit end
    else
      local code, from = (word_unit - 1) / 2, 1
      level = (word - word % 8192) / 8192
      if code >= 1500 then
        local step = (code - 1500) % 13
        from = 2 ^ ((code - 1500 - step) / 13)
        from = from + (from * step - from * step % 13) / 13
      else
        local primes, powers = { 7, 5, 3, 2 }, { 2, 10, 5, 15 }
        for i = 1, 4 do
          local power = code % powers[i]
          for _ = 1, power do from = from * primes[i] end
          code = (code - power) / powers[i]
        end
      end
      if from ~= period then
        local rest, room = level % from, 4503599627370496 - period -- word_limit
        local tokens = (level - rest) / from
        if tokens > (room - room % period) / period then
          level = 4503599627370496
        else
          rest = rest * 4096
          local parts, low = (rest + -rest % from) / from, period % 4096
          local more = parts * low
          level = tokens * period + parts * ((period - low) / 4096) + (more + -more % 4096) / 4096
        end
      end
    end
  else
    level = (word - word % scale) / scale
  end
