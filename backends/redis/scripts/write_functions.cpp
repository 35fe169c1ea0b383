// Writes the library of redis_functions() to a file, for users who load it themselves.
#include <cstdio>
#include <fstream>

#include "sluice/redis/redis_store.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  std::ofstream file(argv[1]);
  file << sluice::redis_functions() << std::flush;
  if (file) return 0;
  std::fprintf(stderr, "%s: cannot write \"%s\"\n", argv[0], argv[1]);
  return 1;
}
