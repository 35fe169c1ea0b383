# Compiles the simulator at -O0 and at -O2 with one compiler, whatever the build uses, and requires
# the pinned traces of both. -DCOMPILER=g++ -DROOT=... -DSOURCES=a,b,c -DWORK=folder -DDEFINES=-DA,-DB
# -DLAUNCHER=ccache
find_program(compiler NAMES "${COMPILER}")
if(NOT compiler)
  message("skipped: ${COMPILER} is not installed")
  return()
endif()
string(REPLACE "," ";" SOURCES "${SOURCES}")
string(REPLACE "," ";" DEFINES "${DEFINES}")
foreach(level O0 O2)
  set(folder "${WORK}/${COMPILER}-${level}")
  file(REMOVE_RECURSE "${folder}")
  file(MAKE_DIRECTORY "${folder}")
  set(objects "")
  foreach(source IN LISTS SOURCES)
    string(MAKE_C_IDENTIFIER "${source}" object)
    list(APPEND objects "${folder}/${object}.o")
    execute_process(COMMAND ${LAUNCHER} "${compiler}" -std=c++20 -${level} ${DEFINES} "-I${ROOT}"
      "-I${ROOT}/include" "-I${ROOT}/sim/include"
      -c "${source}" -o "${folder}/${object}.o" COMMAND_ERROR_IS_FATAL ANY
    )
  endforeach()
  execute_process(COMMAND "${compiler}" ${objects} -o "${folder}/trace" -pthread COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${folder}/trace" OUTPUT_VARIABLE output RESULT_VARIABLE code)
  message("${COMPILER} -${level}:\n${output}")
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${COMPILER} -${level} does not give the pinned traces")
  endif()
endforeach()
