-- What every script starts with. Scripts are kept short of functions and of constants: a function is
-- made anew at every run, and each value from outside that it uses costs about as much again.

-- A state is one byte, its kind, two little-endian 64-bit words from 0 to 2^52, and when the key expires,
-- in microseconds of the server's clock. The last may be missing: then nobody knows.
local STATE, STATE_BYTES, WORD_LIMIT = '<Bi8i8i8', 25, 4503599627370496

