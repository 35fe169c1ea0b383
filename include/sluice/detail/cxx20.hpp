// Reports a compilation as an older C++. Every public header includes it, directly or indirectly,
// before anything that an older C++ cannot parse.
#pragma once

// After an #error a compiler would go on, and report hundreds of lines; a missing file ends it.
#if __cplusplus < 202002L
#include "Sluice needs C++20: compile with -std=c++20 or newer (CMake: target_compile_features(app PRIVATE cxx_std_20))"
#endif
