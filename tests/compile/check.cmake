# Fails unless the compiler finds errors in exactly the lines of FILE that end in `// error: REGEX`,
# and one in each that the expression matches: in its text, or in the notes below it. A failed
# static assertion counts in the line of FILE that it was instantiated for.
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

# What is told of each line of FILE: told_<number>. g++ says for which line it instantiates in front
# of the error, clang++ behind it.
get_filename_component(name "${FILE}" NAME)
set(at 0)
set(instantiated 0)
set(assertion "")
foreach(line IN LISTS told)
  if(line MATCHES "${name}:([0-9]+):[0-9]+: error: ")
    set(at "${CMAKE_MATCH_1}")
    set(is_error_${at} TRUE)
    set(assertion "")
  elseif(line MATCHES "${name}:([0-9]+):[0-9]+:   required from here")
    set(instantiated "${CMAKE_MATCH_1}")
  elseif(line MATCHES ": error: static.assert")
    set(assertion "${line}")
    if(instantiated)
      set(is_error_${instantiated} TRUE)
      string(APPEND told_${instantiated} "\n${line}")
      set(instantiated 0)
    endif()
    set(at 0)
  elseif(line MATCHES ": (fatal )?error: ")
    list(APPEND elsewhere "${line}")
    set(at 0)
  elseif(line MATCHES "${name}:([0-9]+):[0-9]+: note: .*requested here" AND assertion)
    set(is_error_${CMAKE_MATCH_1} TRUE)
    string(APPEND told_${CMAKE_MATCH_1} "\n${assertion}")
  endif()
  if(at)
    string(APPEND told_${at} "\n${line}")
  endif()
endforeach()

set(number 0)
set(expected 0)
foreach(line IN LISTS source)
  math(EXPR number "${number} + 1")
  if(line MATCHES "// error: (.+)$")
    math(EXPR expected "${expected} + 1")
    if(NOT is_error_${number} OR NOT told_${number} MATCHES "${CMAKE_MATCH_1}")
      message(SEND_ERROR "${name}:${number} must not compile (${CMAKE_MATCH_1}):\n${line}\n${told_${number}}")
    endif()
  elseif(is_error_${number})
    message(SEND_ERROR "${name}:${number} must compile:\n${line}\n${told_${number}}")
  endif()
endforeach()
if(expected EQUAL 0)
  message(SEND_ERROR "${name} expects no error")
endif()
if(elsewhere)
  message(SEND_ERROR "errors elsewhere:\n${elsewhere}")
endif()
