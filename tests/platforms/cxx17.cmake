# The test `platform_cxx17`: whichever public header of the core a unit of C++17 includes, the first error says what is wrong.
# Arguments: SOURCE, CXX, FLAGS.
file(GLOB headers RELATIVE "${SOURCE}/include" "${SOURCE}/include/sluice/*.hpp"
  "${SOURCE}/include/sluice/limiters/*.hpp")
list(REMOVE_ITEM headers sluice/asio.hpp)  # Boost's own
list(REMOVE_ITEM headers sluice/version.hpp)  # macros, of any standard
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
set(expected "cxx20.hpp:[0-9:]+ (fatal )?error: [^\n]*Sluice needs C\\+\\+20")
foreach(header IN LISTS headers)
  execute_process(COMMAND "${CXX}" ${flags} -std=c++17 -Wfatal-errors -fsyntax-only "-I${SOURCE}/include" -include "${header}" -x c++ /dev/null
    RESULT_VARIABLE result ERROR_VARIABLE output
  )
  string(REGEX MATCH "[^\n]*error:[^\n]*" first "${output}")
  if(result EQUAL 0 OR NOT first MATCHES "${expected}")
    message(SEND_ERROR "${header}: the first error is not that of cxx20.hpp: ${first}")
  endif()
endforeach()
list(LENGTH headers count)
message(STATUS "${count} headers")
