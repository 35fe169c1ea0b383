# Fails if a file of the library draws by chance that is not listed here: in a simulated world all
# draws come from its seed, which is what rng_of() and Clock::rng() are for.
cmake_minimum_required(VERSION 3.20)
get_filename_component(SOURCE "${SOURCE}" ABSOLUTE)

set(allowed
  "include/sluice/rng.hpp"                      # thread_rng() and SystemRng
  "src/core/rng.cpp"
  "include/sluice/clock.hpp"                    # rng_of()
  "include/sluice/memory_store.hpp"             # says so
  "include/sluice/redis/redis_options.hpp"      # says so
  "backends/memory/memory_store.cpp"            # on clocks without draws of their own
  "src/stores/prefetch_store.cpp"               # the same
  "src/limiters/shared_sliding_window.cpp"      # the same
  "backends/redis/redis_store.cpp"              # real servers only
  "src/testing/conformance.cpp"                 # the seed of a conformance run
)
set(by_chance "thread_rng|SystemRng|random_device|mt19937|default_random_engine|[^a-z_]s?rand\\(|getrandom|getentropy|arc4random|drand48")

file(GLOB_RECURSE files RELATIVE "${SOURCE}"
  "${SOURCE}/include/*.hpp" "${SOURCE}/src/*.?pp" "${SOURCE}/backends/*.?pp" "${SOURCE}/sim/*.?pp"
  "${SOURCE}/timezone/*.?pp" "${SOURCE}/config/*.?pp" "${SOURCE}/cli/*.?pp" "${SOURCE}/tool/*.?pp"
)
list(FILTER files EXCLUDE REGEX "^sim/tests/")
list(LENGTH files count)
if(count LESS 200)
  message(SEND_ERROR "only ${count} files were found")
endif()
foreach(file IN LISTS files)
  file(READ "${SOURCE}/${file}" text)
  if(text MATCHES "${by_chance}")
    list(APPEND drawing "${file}")
  endif()
endforeach()
foreach(file IN LISTS drawing)
  if(NOT file IN_LIST allowed)
    message(SEND_ERROR "${file} draws by chance; draw from rng_of(clock, purpose)")
  endif()
endforeach()
foreach(file IN LISTS allowed)
  if(NOT file IN_LIST drawing)
    message(SEND_ERROR "${file} draws nothing by chance any more: it leaves this list")
  endif()
endforeach()
