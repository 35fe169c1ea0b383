# Lua scripts become C++ data: each script is a list of fragments joined in order, kept with its SHA1, and all of them
# once more a library of functions.
#
# Included, it defines sluice_embed_scripts(<target> FORMS "<form>: <fragment>..."...
# RULES "<name> <id> <form> [<shared>...]"...), which adds redis_scripts.cpp and the folder of redis_scripts.hpp to
# the target, writes the library to redis_functions.lua beside it, and runs this file again as a script whenever a
# fragment changes.
#
# A rule is the file <name>.lua, which ends in the line that names KIND, ARGUMENTS and so on. It
# becomes the script <name>: the fragments of its form, with the file in the place of RULE, and, in
# the forms terse and brief, its short cut <name>_quick.lua in the place of QUICK. What several rules
# are made of is a file <shared>.lua, which stands before each of them, or in the place of a line
# "-- SHARED <shared>": there a function costs nothing until it is needed, and a piece of a rule nothing at all. A form
# that holds RULES becomes one script of the form's name, with a function rule(id) in that place: it
# answers KIND, ARGUMENTS, DETAILS, HEAD and decide of the rule, whose functions are made by that call only.
# CELL_RULES leaves out the wide ones.
#
# In the library the fragments prelude.lua and wide.lua and the rules stand once, in front: what they make is made when
# it is loaded. The rest of a script is the body of a function of KEYS and ARGV, a short cut with a scope of its own,
# and names like redis.call are locals of the library, redis_call. So what stands in front must not look at a request
# when it is made, and a driver must leave KIND, DETAILS and so on as they are, and set wide.lua's words on the step in
# hand. The names of the library and its functions hold a digest of its text: versions of it live side by side.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(SLUICE_EMBED_SCRIPTS_FILE "${CMAKE_CURRENT_LIST_FILE}")

  function(sluice_embed_scripts target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FORMS;RULES")
    set(fragments "")
    foreach(row IN LISTS arg_FORMS)
      if(NOT row MATCHES "^[a-z]+:( [a-z_]+[.]lua| QUICK| RULE| (CELL_)?RULES)+$")
        message(FATAL_ERROR "expected \"form: fragment.lua...\", got \"${row}\"")
      endif()
      string(REGEX MATCHALL "[a-z_]+[.]lua" names "${row}")
      list(APPEND fragments ${names})
    endforeach()
    foreach(row IN LISTS arg_RULES)
      if(NOT row MATCHES "^([a-z_]+) [0-9]+ (lean|cell|terse|wide|brief)(( [a-z_]+)*)$")
        message(FATAL_ERROR "expected \"name id form [shared...]\", got \"${row}\"")
      endif()
      list(APPEND fragments "${CMAKE_MATCH_1}.lua")
      if(CMAKE_MATCH_2 STREQUAL "terse" OR CMAKE_MATCH_2 STREQUAL "brief")
        list(APPEND fragments "${CMAKE_MATCH_1}_quick.lua")
      endif()
      string(REGEX MATCHALL "[a-z_]+" shared "${CMAKE_MATCH_3}")
      list(TRANSFORM shared APPEND ".lua")
      list(APPEND fragments ${shared})
    endforeach()
    list(REMOVE_DUPLICATES fragments)
    list(TRANSFORM fragments PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/lua/")

    string(JOIN "|" forms ${arg_FORMS})
    string(JOIN "|" rules ${arg_RULES})
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/scripts")
    add_custom_command(
      OUTPUT "${folder}/redis_scripts.cpp" "${folder}/redis_scripts.hpp" "${folder}/redis_functions.lua"
      COMMAND "${CMAKE_COMMAND}" "-DFORMS=${forms}" "-DRULES=${rules}"
        "-DLUA=${CMAKE_CURRENT_SOURCE_DIR}/lua" "-DOUTPUT=${folder}"
        -P "${SLUICE_EMBED_SCRIPTS_FILE}"
      DEPENDS ${fragments} "${SLUICE_EMBED_SCRIPTS_FILE}"
      COMMENT "Embedding the Lua scripts"
      VERBATIM
    )
    target_sources(${target} PRIVATE
      "${folder}/redis_scripts.cpp" "${folder}/redis_scripts.hpp"
    )
    # C++ need not take literals as long as a script of all rules; the compilers that we build with do.
    set_source_files_properties("${folder}/redis_scripts.cpp" PROPERTIES
      COMPILE_OPTIONS -Wno-overlength-strings
    )
    target_include_directories(${target} PRIVATE "${folder}")
  endfunction()
  return()
endif()

cmake_minimum_required(VERSION 3.20)

set(texts "")
set(rows "")
set(count 0)
string(REPLACE "|" ";" FORMS "${FORMS}")
string(REPLACE "|" ";" RULES "${RULES}")

# What the branch of a rule in rule(id) answers.
set(answer_of_lean "KIND, ARGUMENTS, 0, nil, decide")
set(answer_of_terse "${answer_of_lean}")
set(answer_of_cell "KIND, ARGUMENTS, DETAILS, nil, decide")
set(answer_of_wide "KIND, ARGUMENTS, DETAILS, HEAD, decide")
set(answer_of_brief "${answer_of_wide}")

# Reads the rule of a row into `text`, with what it shares with others.
function(read_rule row)
  string(REGEX MATCH "^([a-z_]+) [0-9]+ [a-z]+(.*)$" row "${row}")
  file(READ "${LUA}/${CMAKE_MATCH_1}.lua" text)
  string(REGEX MATCHALL "[a-z_]+" shared "${CMAKE_MATCH_2}")
  foreach(stem IN LISTS shared)
    file(READ "${LUA}/${stem}.lua" part)
    string(FIND "${text}" "-- SHARED ${stem}\n" place)
    if(place EQUAL -1)
      string(PREPEND text "${part}")
    else()
      string(REPLACE "-- SHARED ${stem}\n" "${part}" text "${text}")
    endif()
  endforeach()
  if(text MATCHES "-- SHARED ([a-z_]+)")
    message(FATAL_ERROR "the row \"${row}\" does not name ${CMAKE_MATCH_1}, which its file asks for")
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()

function(append_rules file forms)
  file(APPEND "${file}" "local function rule(id)\n")
  set(word "if")
  foreach(row IN LISTS RULES)
    string(REGEX MATCH "^[a-z_]+ ([0-9]+) ([a-z]+)" start "${row}")
    set(id "${CMAKE_MATCH_1}")
    set(form "${CMAKE_MATCH_2}")
    if(NOT form IN_LIST forms)
      continue()
    endif()
    read_rule("${row}")
    file(APPEND "${file}" "${word} id == ${id} then\n" "${text}" "return ${answer_of_${form}}\n")
    set(word "elseif")
  endforeach()
  file(APPEND "${file}" "end\nend\n\n")
endfunction()

# Joins the fragments of `row`, the row of a form, to the script `name`, of that rule if it is one's. In
# the forms terse, brief and buckets a request is one argument.
function(add_script name row rule)
  string(REGEX REPLACE "^[a-z]+: " "" fragments "${row}")
  string(REPLACE " " ";" fragments "${fragments}")
  set(assembled "${OUTPUT}/${name}.lua")
  file(WRITE "${assembled}" "")
  foreach(fragment IN LISTS fragments)
    if(fragment STREQUAL "RULES")
      append_rules("${assembled}" "lean;cell;terse;wide;brief")
      continue()
    elseif(fragment STREQUAL "CELL_RULES")
      append_rules("${assembled}" "lean;cell;terse")
      continue()
    elseif(fragment STREQUAL "RULE")
      read_rule("${rule}")
      file(APPEND "${assembled}" "${text}")
      continue()
    elseif(fragment STREQUAL "QUICK")
      set(fragment "${name}_quick.lua")
    endif()
    file(READ "${LUA}/${fragment}" text)
    file(APPEND "${assembled}" "${text}")
  endforeach()
  file(SHA1 "${assembled}" sha1)
  file(SIZE "${assembled}" size)
  file(READ "${assembled}" text)
  string(APPEND texts "constexpr char text_of_${name}[] = R\"lua(${text})lua\";\n")
  set(is_single false)
  if(row MATCHES "^(terse|brief|buckets):")
    set(is_single true)
  endif()
  string(APPEND rows
    "    {\"${name}\", {text_of_${name}, ${size}}, \"${sha1}\", \"sluice_DIGEST_${name}\", ${is_single}},\n")
  math(EXPR count "${count} + 1")
  set(texts "${texts}" PARENT_SCOPE)
  set(rows "${rows}" PARENT_SCOPE)
  set(count "${count}" PARENT_SCOPE)
endfunction()

# Appends the function `name` to the library, with the same meaning as add_script().
function(add_function name row rule)
  string(REGEX REPLACE "^[a-z]+: " "" fragments "${row}")
  string(REPLACE " " ";" fragments "${fragments}")
  list(REMOVE_ITEM fragments prelude.lua wide.lua RULE RULES CELL_RULES)
  set(function "")
  foreach(fragment IN LISTS fragments)
    if(fragment STREQUAL "QUICK")
      file(READ "${LUA}/${name}_quick.lua" text)
      set(text "do\n${text}end\n")
    else()
      file(READ "${LUA}/${fragment}" text)
    endif()
    string(APPEND function "${text}")
  endforeach()
  set(function "register('${name}', function(KEYS, ARGV)\nif not redis_call then start() end\n${function}\nend)\n")
  if(rule)
    read_rule("${rule}")
    string(REGEX MATCH "^[a-z_]+ ([0-9]+) ([a-z]+)" start "${rule}")
    set(answer "rules[${CMAKE_MATCH_1}] = {${answer_of_${CMAKE_MATCH_2}}}")
    set(function "do\n${text}${answer}\n${function}end\n")
  endif()
  set(functions "${functions}${function}" PARENT_SCOPE)
endfunction()

foreach(form IN LISTS FORMS)
  string(REGEX MATCH "^[a-z]+" name "${form}")
  set(form_${name} "${form}")
  if(form MATCHES "RULES( |$)")
    add_script("${name}" "${form}" "")
  endif()
endforeach()
foreach(rule IN LISTS RULES)
  string(REGEX MATCH "^([a-z_]+) [0-9]+ ([a-z]+)" start "${rule}")
  set(name "${CMAKE_MATCH_1}")
  set(form "${form_${CMAKE_MATCH_2}}")
  add_script("${name}" "${form}" "${rule}")
  add_function("${name}" "${form}" "${rule}")
endforeach()
string(APPEND functions "local function rule(id)
local found = rules[id]
return found[1], found[2], found[3], found[4], found[5]
end
")
foreach(form IN LISTS FORMS)
  if(form MATCHES "RULES( |$)")
    string(REGEX MATCH "^[a-z]+" name "${form}")
    add_function("${name}" "${form}" "")
  endif()
endforeach()

# The library. Redis shows it nothing but redis.register_function before the first call.
file(READ "${LUA}/prelude.lua" prelude)
file(READ "${LUA}/wide.lua" wide)
set(functions "${prelude}${wide}${functions}")
set(borrowed "(redis|struct|string)[.]([a-z]+)")
string(REGEX MATCHALL "${borrowed}" names "${functions}")
list(REMOVE_DUPLICATES names)
list(JOIN names ", " names)
string(REGEX REPLACE "${borrowed}" "\\1_\\2" locals "${names}")
string(REGEX REPLACE "${borrowed}" "\\1_\\2" functions "${functions}")
set(functions "#!lua name=sluice_DIGEST
local rules = {}
local function register(name, run) redis.register_function('sluice_DIGEST_' .. name, run) end
local ${locals}
local function start() ${locals} = ${names} end
${functions}")
string(REGEX REPLACE "\n *--[^\n]*" "" functions "${functions}")
string(REGEX REPLACE "\n\n+" "\n" functions "${functions}")
string(SHA1 digest "${functions}")
string(SUBSTRING "${digest}" 0 12 digest)
string(REPLACE "DIGEST" "${digest}" functions "${functions}")
string(REPLACE "DIGEST" "${digest}" rows "${rows}")
string(LENGTH "${functions}" functions_size)
file(WRITE "${OUTPUT}/redis_functions.lua" "${functions}")

file(WRITE "${OUTPUT}/redis_scripts.hpp" "// Generated from backends/redis/lua: the scripts that the Redis store sends.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::redis_detail {

struct Script {
  std::string_view name;
  std::string_view text;
  std::string_view sha1;      // of the text, 40 lower-case hexadecimal digits
  std::string_view function;  // its name in the library
  bool is_single;             // a request is one argument, and the times to live are words in it
};

// All of them as functions.
struct Library {
  std::string_view name;
  std::string_view text;
};

extern const Script scripts[];
extern const std::size_t script_count;
extern const Library library;

}  // namespace sluice::redis_detail
")
file(WRITE "${OUTPUT}/redis_scripts.cpp" "// Generated from backends/redis/lua.
#include \"redis_scripts.hpp\"

namespace sluice::redis_detail {
namespace {

${texts}
constexpr char text_of_library[] = R\"lua(${functions})lua\";

}  // namespace

const Script scripts[] = {
${rows}};
const std::size_t script_count = ${count};
const Library library{\"sluice_${digest}\", {text_of_library, ${functions_size}}};

}  // namespace sluice::redis_detail
")
