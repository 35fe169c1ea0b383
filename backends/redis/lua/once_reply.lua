if all then
  local KIND = 12 -- StateKind::idempotency_record
  -- id_kept_for, clock_slack and the second that every key is kept longer.
  redis.call('PSETEX', KEYS[#KEYS], '661000',
    struct.pack('<Bi8', KIND, now) .. string.sub(ARGV[1], 11, 18) .. verdicts .. told)
end
return struct.pack('<c8i8', ARGV[1], now) .. verdicts .. told
