# Fails unless the compiler finds errors in exactly the lines of FILE that end in `// error: REGEX`,
# and one in each that the expression matches.
cmake_minimum_required(VERSION 3.20)

set(ENV{LC_ALL} C)
execute_process(
  COMMAND "${CXX}" "${NO_LIMIT}" -std=c++20 -fsyntax-only -Werror=unused-result "-I${SOURCE}/include"
    "${FILE}"
  ERROR_VARIABLE told
)

# A semicolon or a bracket would split or join the entries of a list.
string(REGEX REPLACE "[][;]" " " told "${told}")
string(REPLACE "\n" ";" told "${told}")
file(READ "${FILE}" source)
string(REGEX REPLACE "[][;]" " " source "${source}")
string(REPLACE "\n" ";" source "${source}")

get_filename_component(name "${FILE}" NAME)
set(number 0)
set(expected 0)
foreach(line IN LISTS source)
  math(EXPR number "${number} + 1")
  set(errors "${told}")
  list(FILTER errors INCLUDE REGEX "${name}:${number}:[0-9]+: error: ")
  if(line MATCHES "// error: (.+)$")
    math(EXPR expected "${expected} + 1")
    if(NOT errors MATCHES "${CMAKE_MATCH_1}")
      message(SEND_ERROR "${name}:${number} must not compile (${CMAKE_MATCH_1}):\n${line}\n${errors}")
    endif()
  elseif(errors)
    message(SEND_ERROR "${name}:${number} must compile:\n${line}\n${errors}")
  endif()
endforeach()
if(expected EQUAL 0)
  message(SEND_ERROR "${name} expects no error")
endif()

list(FILTER told INCLUDE REGEX ": (fatal )?error: ")
list(FILTER told EXCLUDE REGEX "${name}:[0-9]+:[0-9]+: error: ")
if(told)
  message(SEND_ERROR "errors elsewhere:\n${told}")
endif()
