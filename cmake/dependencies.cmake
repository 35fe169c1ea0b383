# Everything found here comes from the system; nothing is downloaded.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(SLUICE_REDIS OR SLUICE_ASIO)
  find_package(Boost 1.81 REQUIRED CONFIG)
endif()
if(SLUICE_REDIS)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=0.14)
endif()
if(SLUICE_TIMEZONE)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS "${CMAKE_CXX20_STANDARD_COMPILE_OPTION}")
  check_cxx_source_compiles("
    #include <chrono>
    static_assert(__cpp_lib_chrono >= 201907L);
    int main() { return std::chrono::get_tzdb().version.empty(); }"
    SLUICE_STD_TZDB
  )
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT SLUICE_STD_TZDB)
    find_package(date REQUIRED)
  endif()
endif()
if(SLUICE_TOOLS)
  if(NOT SLUICE_SIM)
    message(FATAL_ERROR "SLUICE_TOOLS needs SLUICE_SIM")
  endif()
  find_package(fmt REQUIRED)
  find_package(CLI11 REQUIRED)
endif()
if(SLUICE_TESTS)
  find_package(Catch2 REQUIRED)
  find_package(GTest REQUIRED)
endif()
if(SLUICE_BENCH)
  find_package(benchmark REQUIRED)
endif()
