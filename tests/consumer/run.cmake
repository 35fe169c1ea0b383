# The test `consumer`: installs the build, moves the installation elsewhere, and builds and runs a
# user's project against it, through find_package() and through pkg-config. Without BUILD, the
# installation is that of Debian's packages, in /usr (packaging/check.sh).
# Arguments: BUILD, WORK, CXX, LAUNCHER, GENERATOR, COMPONENTS ("a,b"), LEFT_OUT ("a,b"), LIBDIR.

cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" LEFT_OUT "${LEFT_OUT}")
set(source "${CMAKE_CURRENT_LIST_DIR}")
set(prefix "${WORK}/moved prefix")

function(run)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FAILS_WITH" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  list(JOIN arg_COMMAND " " line)
  if(NOT arg_FAILS_WITH)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "${line}\n${out}")
    endif()
    message(STATUS "ok: ${line}")
  else()
    string(REGEX REPLACE "[ \n]+" " " out "${out}")
    if(result EQUAL 0 OR NOT out MATCHES "${arg_FAILS_WITH}")
      message(FATAL_ERROR "${line}\nshould have failed with \"${arg_FAILS_WITH}\":\n${out}")
    endif()
    message(STATUS "ok, refused: ${line}")
  endif()
endfunction()

# configure(<name> <components> [FAILS_WITH <regex>])
function(configure name components)
  run(COMMAND "${CMAKE_COMMAND}" -S "${source}" -B "${WORK}/${name}" -G "${GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
      "-DCMAKE_PREFIX_PATH=${prefix}" "-DCOMPONENTS=${components}"
    ${ARGN})
endfunction()

file(REMOVE_RECURSE "${WORK}")
if(BUILD)
  run(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
  file(RENAME "${WORK}/installed" "${prefix}")
else()
  set(prefix /usr)
endif()

if(COMPONENTS MATCHES "redis" AND NOT EXISTS "${prefix}/share/sluice/redis_functions.lua")
  message(FATAL_ERROR "share/sluice/redis_functions.lua is not installed")
endif()
# The program includes that for Beast; the libraries of these are not everywhere.
foreach(adapter httplib prometheus)
  if(NOT EXISTS "${prefix}/include/sluice/adapters/${adapter}.hpp")
    message(FATAL_ERROR "include/sluice/adapters/${adapter}.hpp is not installed")
  endif()
endforeach()

configure(core "")
configure(components "${COMPONENTS}")
foreach(name core components)
  run(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/${name}")
  run(COMMAND "${WORK}/${name}/consumer")
endforeach()
foreach(kit plain catch2 gtest)
  run(COMMAND "${WORK}/components/kit_${kit}")
endforeach()

configure(unknown "nonsense" FAILS_WITH "no component is called \"nonsense\"")
foreach(component IN LISTS LEFT_OUT)
  configure(left-out "${component}" FAILS_WITH "built without \"${component}\"")
endforeach()

string(REPLACE "," ";" COMPONENTS "${COMPONENTS}")
set(packages sluice)
set(defines "")
foreach(component config redis sim testing timezone world)
  if(component IN_LIST COMPONENTS)
    list(APPEND packages sluice-${component})
    string(TOUPPER ${component} define)
    list(APPEND defines -DWITH_${define})
  endif()
endforeach()
set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
set(ENV{LD_LIBRARY_PATH} "${prefix}/${LIBDIR}")
execute_process(COMMAND pkg-config --cflags --libs ${packages}
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY
)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(COMMAND "${CXX}" -std=c++20 ${defines} "${source}/main.cpp" -o "${WORK}/by-pkg-config" ${flags})
run(COMMAND "${WORK}/by-pkg-config")
