return struct.pack('<c8i8', ARGV[1], now) .. verdicts .. told
