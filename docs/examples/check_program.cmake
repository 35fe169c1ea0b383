# Fails unless the page contains the example.
file(READ "${PAGE}" page)
file(READ "${EXAMPLE}" example)
string(FIND "${page}" "```cpp\n${example}```" place)
if(place EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show ${EXAMPLE} word for word")
endif()
