# The kinds of target that the folders' CMakeLists.txt are made of.

# sluice_library(<target> <component>): a library with sources; the folders add theirs with target_sources().
function(sluice_library target component)
  add_library(${target})
  add_library(sluice::${component} ALIAS ${target})
  string(REPLACE "_" "-" file_name ${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${component}
    OUTPUT_NAME ${file_name}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    DEFINE_SYMBOL ""  # so that ccache has what a static library was compiled from
  )
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC
      "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
      "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${PROJECT_SOURCE_DIR}"
  )
  # A shared library's own calls need not be replaceable by others, so they can be inlined.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  sluice_warnings(${target})
endfunction()

# What most files that use Asio include of it.
set(sluice_asio_headers
  <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp>
)

# sluice_precompile(<target> [<header>...]): compiles the standard library and these headers once for the target. To
# read them takes longer than to compile a short file.
function(sluice_precompile target)
  if(NOT SLUICE_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
    <string_view> <system_error> <unordered_map> <utility> <vector> ${ARGN}
  )
  # For ccache.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>"
  )
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # It sees strings written beyond their ends (GCC bug 105651) in what it takes for our code then.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# sluice_unoptimized(<target>...): under sanitizers these are not optimized. They wait for servers, or run for moments,
# and coroutines take twice as long to compile otherwise.
function(sluice_unoptimized)
  if(SLUICE_SANITIZE)
    foreach(target IN LISTS ARGV)
      target_compile_options(${target} PRIVATE -O0)
    endforeach()
  endif()
endfunction()

# sluice_simulator(<target> <component>): a library of the simulator, whose public headers are in sim/include.
function(sluice_simulator target component)
  sluice_library(${target} ${component})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sim/include>")
endfunction()

# sluice_headers(<component>): a library that is only headers.
function(sluice_headers component)
  add_library(sluice_${component} INTERFACE)
  add_library(sluice::${component} ALIAS sluice_${component})
  set_target_properties(sluice_${component} PROPERTIES EXPORT_NAME ${component})
  target_link_libraries(sluice_${component} INTERFACE sluice::sluice)
endfunction()

# sluice_program(<target> SOURCES <file>... [LIBRARIES <target>...])
function(sluice_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE sluice::sluice ${arg_LIBRARIES})
  sluice_warnings(${target})
  sluice_hardening(${target})
endfunction()

# sluice_test_options(<target>): tests and examples take longer to compile than to run. All have the same options, on
# which precompiled headers depend.
function(sluice_test_options target)
  target_compile_definitions(${target} PRIVATE _FILE_OFFSET_BITS=64)  # as hiredis has it
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-Og>
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>  # for ccache
  )
  if(SLUICE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 sees strings written beyond their ends at this level (GCC bug 105651), and std::stop_source used
    # before it is made.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-maybe-uninitialized)
  endif()
endfunction()

# sluice_realtime(<entry>...): these entries of ctest wait for servers, processes or signals by the real clock. ./dev
# runs one that fails once more (docs/CONTRIBUTING.md).
function(sluice_realtime)
  set_property(TEST ${ARGV} APPEND PROPERTY LABELS realtime)
endfunction()

# sluice_long(<program>...): only entries of the label `long` run these programs. They are built by the target
# `long_tests`, and by default under sanitizers, where no entry is left out.
function(sluice_long)
  if(NOT SLUICE_SANITIZE)
    set_target_properties(${ARGV} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(long_tests ${ARGV})
  endif()
endfunction()

# sluice_test(<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...] [TIMEOUT <seconds>]
#             [APART <tag>] [STORES] [ONE_THREAD] [REALTIME] [LONG])
# One Catch2 program, one entry of ctest, which is skipped if a test case was left out and none failed
# (tests/left_out.hpp). What may be left out is therefore an entry of its own beside what is not:
# APART: the test cases of this tag are the entry <name>_<tag>; of the tag [realtime], it is as with REALTIME.
# STORES: for_each_store() runs on Redis in the entry <name>_redis, on the other stores in <name>.
# ONE_THREAD: nothing that it tests has a second thread, so ThreadSanitizer leaves it out.
# REALTIME: see sluice_realtime().
# LONG: its label is `long`; see sluice_long().
# Under sanitizers, test cases with the tag [statistics] are left out: they compute for long in virtual time, where
# others have been.
# Label `redis`: starts a redis-server, whose path it finds in the environment (SLUICE_REDIS_SERVER) or in PATH. It is
# REALTIME, and where Redis has an entry of its own, only this entry has the label.
function(sluice_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STORES;ONE_THREAD;REALTIME;LONG" "APART;TIMEOUT" "SOURCES;LIBRARIES;LABELS")
  if(arg_ONE_THREAD AND SLUICE_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  sluice_program(test_${name} SOURCES ${arg_SOURCES}
    LIBRARIES sluice_test_main ${arg_LIBRARIES}
  )
  sluice_test_options(test_${name})
  if(arg_LONG)
    sluice_long(test_${name})
    list(APPEND arg_LABELS long)
  endif()
  # What links Asio has its headers precompiled as well.
  if(arg_LIBRARIES MATCHES "sluice::(asio|world)")
    target_precompile_headers(test_${name} REUSE_FROM sluice_test_precompiled_asio)
  else()
    target_precompile_headers(test_${name} REUSE_FROM sluice_test_precompiled)
  endif()
  set(entries ${name})
  set(filter "")
  if(SLUICE_SANITIZE)
    set(filter "~[statistics]~[.]")
  endif()
  if(arg_APART)
    list(APPEND entries ${name}_${arg_APART})
    add_test(NAME ${name} COMMAND test_${name} "~[${arg_APART}]${filter}~[.]")
    add_test(NAME ${name}_${arg_APART} COMMAND test_${name} "[${arg_APART}]${filter}")
  elseif(arg_STORES AND SLUICE_REDIS)
    list(APPEND entries ${name}_redis)
    add_test(NAME ${name} COMMAND test_${name} ${filter})
    add_test(NAME ${name}_redis COMMAND test_${name} ${filter})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT SLUICE_TEST_STORES=local)
    set_tests_properties(${name}_redis PROPERTIES ENVIRONMENT SLUICE_TEST_STORES=redis)
  else()
    add_test(NAME ${name} COMMAND test_${name} ${filter})
  endif()
  set_tests_properties(${entries} PROPERTIES
    TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
  )
  if(${name}_redis IN_LIST entries)
    list(REMOVE_ITEM arg_LABELS redis)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
    sluice_realtime(${name}_redis)
  elseif(arg_REALTIME OR redis IN_LIST arg_LABELS)
    sluice_realtime(${entries})
  elseif(arg_APART STREQUAL "realtime")
    sluice_realtime(${name}_realtime)
  endif()
endfunction()

# sluice_bench(<name> SOURCES <file>... [LIBRARIES <target>...]): a Google Benchmark program, bench_<name>.
# It is not hardened: it measures what users build.
function(sluice_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(bench_${name} ${arg_SOURCES})
  target_include_directories(bench_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(bench_${name} PRIVATE sluice::sluice benchmark::benchmark_main ${arg_LIBRARIES})
  sluice_warnings(bench_${name})
  add_dependencies(benchmarks bench_${name})
endfunction()

# sluice_example(<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...])
# A program of the documentation, which is also a test: it must end with 0.
function(sluice_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;LABELS")
  sluice_program(example_${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES})
  sluice_test_options(example_${name})
  add_test(NAME example_${name} COMMAND example_${name})
  set_tests_properties(example_${name} PROPERTIES TIMEOUT 300 LABELS "example;${arg_LABELS}")
endfunction()
