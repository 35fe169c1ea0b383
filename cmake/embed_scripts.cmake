# Lua scripts become C++ data: each script is a list of fragments joined in order, kept with its SHA1.
#
# Included, it defines sluice_embed_scripts(<target> "<name>: <fragment>..."...), which adds
# redis_scripts.cpp and the folder of redis_scripts.hpp to the target and runs this file again as a
# script whenever a fragment changes.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(SLUICE_EMBED_SCRIPTS_FILE "${CMAKE_CURRENT_LIST_FILE}")

  function(sluice_embed_scripts target)
    set(fragments "")
    foreach(row IN LISTS ARGN)
      if(NOT row MATCHES "^([a-z0-9_]+):([ \n]+[a-z0-9_/.]+)+$")
        message(FATAL_ERROR "expected \"name: fragment.lua...\", got \"${row}\"")
      endif()
      string(REGEX MATCHALL "[a-z0-9_/]+[.]lua" names "${row}")
      list(TRANSFORM names PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/lua/")
      list(APPEND fragments ${names})
    endforeach()
    list(REMOVE_DUPLICATES fragments)

    string(JOIN "|" table ${ARGN})
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/scripts")
    add_custom_command(
      OUTPUT "${folder}/redis_scripts.cpp" "${folder}/redis_scripts.hpp"
      COMMAND "${CMAKE_COMMAND}" "-DTABLE=${table}" "-DLUA=${CMAKE_CURRENT_SOURCE_DIR}/lua"
        "-DOUTPUT=${folder}" -P "${SLUICE_EMBED_SCRIPTS_FILE}"
      DEPENDS ${fragments} "${SLUICE_EMBED_SCRIPTS_FILE}"
      COMMENT "Embedding the Lua scripts"
      VERBATIM
    )
    target_sources(${target} PRIVATE
      "${folder}/redis_scripts.cpp" "${folder}/redis_scripts.hpp"
    )
    target_include_directories(${target} PRIVATE "${folder}")
  endfunction()
  return()
endif()

string(REPLACE "|" ";" TABLE "${TABLE}")
set(texts "")
set(rows "")
set(count 0)
foreach(row IN LISTS TABLE)
  string(REGEX MATCH "^[a-z0-9_]+" name "${row}")
  string(REGEX MATCHALL "[a-z0-9_/]+[.]lua" fragments "${row}")
  set(assembled "${OUTPUT}/${name}.lua")
  file(WRITE "${assembled}" "")
  foreach(fragment IN LISTS fragments)
    file(READ "${LUA}/${fragment}" text)
    file(APPEND "${assembled}" "${text}")
  endforeach()
  file(SHA1 "${assembled}" sha1)
  file(SIZE "${assembled}" size)
  file(READ "${assembled}" bytes HEX)
  # An array of characters has no limit of length and nothing to escape.
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND texts "constexpr char text_of_${name}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {text_of_${name}, ${size}}, \"${sha1}\"},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE "${OUTPUT}/redis_scripts.hpp" "// Generated from backends/redis/lua: the scripts that the Redis store sends.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::redis_detail {

struct Script {
  std::string_view name;
  std::string_view text;
  std::string_view sha1;  // of the text, 40 lower-case hexadecimal digits
};

extern const Script scripts[];
extern const std::size_t script_count;

}  // namespace sluice::redis_detail
")
file(WRITE "${OUTPUT}/redis_scripts.cpp" "// Generated from backends/redis/lua.
#include \"redis_scripts.hpp\"

namespace sluice::redis_detail {
namespace {

${texts}
}  // namespace

const Script scripts[] = {
${rows}};
const std::size_t script_count = ${count};

}  // namespace sluice::redis_detail
")
