// Names the fault when a unit is compiled as an older C++. Every public header includes it,
// directly or through another, ahead of what an older C++ does not understand.
#pragma once

#if __cplusplus < 202002L
#error Sluice needs C++20: compile with -std=c++20 or newer (CMake: target_compile_features(app PRIVATE cxx_std_20))
#endif
