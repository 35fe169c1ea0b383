// Reports a compilation as an older C++. Every public header includes it, directly or indirectly,
// before anything that an older C++ cannot parse.
#pragma once

#if __cplusplus < 202002L
#error Sluice needs C++20: compile with -std=c++20 or newer (CMake: target_compile_features(app PRIVATE cxx_std_20))
#endif
