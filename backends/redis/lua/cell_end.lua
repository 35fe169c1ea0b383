return struct.pack('<c8i8i8i8i8i8', ARGV[1], now, status, remaining, retry_after, reset_after) ..
  (output or string.rep('\0', 8 * DETAILS))
