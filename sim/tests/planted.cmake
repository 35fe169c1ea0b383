# Plants a bug of planted_bugs.cmake in a copy of a source, links sluice-sim with it, and requires that the judge named
# there objects to random worlds, and that `sluice-sim shrink` makes one of the first three small within a minute.
# -DBUG=name -DROOT=... -DWORK=folder -DCXX=g++ -DLAUNCHER=ccache -DOBJECTS=a,b -DLIBRARIES=c,d
cmake_minimum_required(VERSION 3.21)

set(most_worlds 3)
set(most_faults 3)
set(most_workers 3)
set(most_seconds 60)
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
string(REPLACE "," ";" LIBRARIES "${LIBRARIES}")

# The number of places of a text.
function(count_places text part result)
  string(LENGTH "${text}" before)
  string(REPLACE "${part}" "" without "${text}")
  string(LENGTH "${without}" after)
  string(LENGTH "${part}" length)
  math(EXPR count "(${before} - ${after}) / ${length}")
  set(${result} ${count} PARENT_SCOPE)
endfunction()

function(plant source from to)
  file(READ "${ROOT}/${source}" text)
  count_places("${text}" "${from}" places)
  if(NOT places EQUAL 1)
    message(FATAL_ERROR "${source} has ${places} times what ${BUG} replaces, and must have it once:\n${from}")
  endif()
  string(REPLACE "${from}" "${to}" text "${text}")
  file(REMOVE_RECURSE "${WORK}")
  file(MAKE_DIRECTORY "${WORK}")
  file(WRITE "${WORK}/planted.cpp" "${text}")
  execute_process(COMMAND ${LAUNCHER} "${CXX}" -std=c++20 -O1 "-I${ROOT}/include" "-I${ROOT}"
    -c "${WORK}/planted.cpp" -o "${WORK}/planted.o" COMMAND_ERROR_IS_FATAL ANY
  )
  # Ahead of the libraries, from which nothing is then taken in its place.
  execute_process(COMMAND "${CXX}" ${OBJECTS} "${WORK}/planted.o" ${LIBRARIES} -pthread -o "${WORK}/sluice-sim"
    COMMAND_ERROR_IS_FATAL ANY
  )
endfunction()

# Runs sluice-sim; the judge must object.
function(expect_objection judge result)
  execute_process(COMMAND "${WORK}/sluice-sim" ${ARGN} TIMEOUT ${most_seconds}
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code
  )
  if(NOT code STREQUAL "1" OR NOT output MATCHES "^# \"${judge}\" objects")
    list(JOIN ARGN " " arguments)
    message(FATAL_ERROR "\"${judge}\" does not object to ${BUG} within ${most_seconds} s: sluice-sim ${arguments} "
      "ended with ${code}\n${output}${errors}"
    )
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

function(planted_bug name source judge from to)
  if(NOT name STREQUAL BUG)
    return()
  endif()
  plant("${source}" "${from}" "${to}")
  set(seed 0)
  foreach(world RANGE 1 ${most_worlds})
    math(EXPR seed "${seed} + 1")
    expect_objection("${judge}" objection fuzz --judge "${judge}" --first ${seed} --count 3000)
    string(REGEX MATCH "of seed ([0-9]+)" of_seed "${objection}")
    set(seed ${CMAKE_MATCH_1})
    file(WRITE "${WORK}/world.toml" "${objection}")
    expect_objection("${judge}" shrunk shrink --judge "${judge}" "${WORK}/world.toml")
    message("${shrunk}")
    count_places("${shrunk}" "[[fault]]" faults)
    if(NOT shrunk MATCHES "\nworkers = \"([0-9]+)\"")
      message(FATAL_ERROR "the number of workers is missing")
    endif()
    set(workers ${CMAKE_MATCH_1})
    if(faults LESS_EQUAL most_faults AND workers LESS_EQUAL most_workers)
      file(REMOVE_RECURSE "${WORK}")
      set(found ON PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${BUG} was not shrunk to ${most_faults} faults and ${most_workers} workers in any of "
    "${most_worlds} worlds"
  )
endfunction()

set(found OFF)
include("${CMAKE_CURRENT_LIST_DIR}/planted_bugs.cmake")
if(NOT found)
  message(FATAL_ERROR "planted_bugs.cmake has no bug \"${BUG}\"")
endif()
