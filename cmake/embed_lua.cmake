# sluice_embed_lua(<target> <file>...): adds lua_files.cpp to the target, which defines lua_files() of scripts.hpp: the
# files, without their comments. Run as a script, this file writes it, whenever one of them has changed.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(SLUICE_EMBED_LUA_FILE "${CMAKE_CURRENT_LIST_FILE}")

  function(sluice_embed_lua target)
    set(files ${ARGN})
    list(TRANSFORM files PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/lua/" OUTPUT_VARIABLE paths)
    string(JOIN "|" names ${files})
    set(output "${CMAKE_CURRENT_BINARY_DIR}/lua_files.cpp")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DFILES=${names}" "-DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/lua"
        "-DOUTPUT=${output}" -P "${SLUICE_EMBED_LUA_FILE}"
      DEPENDS ${paths} "${SLUICE_EMBED_LUA_FILE}"
      COMMENT "Embedding the Lua files"
      VERBATIM
    )
    target_sources(${target} PRIVATE "${output}")
  endfunction()
  return()
endif()

string(REPLACE "|" ";" FILES "${FILES}")
set(rows "")
foreach(name IN LISTS FILES)
  file(READ "${FOLDER}/${name}" text)
  string(REGEX REPLACE "(^|\n) *--[^@\n][^\n]*" "" text "${text}")
  string(REGEX REPLACE " +-- [^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n[ \n]+" "\n" text "${text}")
  string(APPEND rows "    {\"${name}\", R\"lua(${text})lua\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from the files of backends/redis/lua.
#include \"backends/redis/scripts/scripts.hpp\"

namespace sluice::redis_detail {

std::span<const LuaFile> lua_files() noexcept {
  static constexpr LuaFile files[] = {
${rows}  };
  return files;
}

}  // namespace sluice::redis_detail
")
