# Flags for our own code. None of them reaches a user of the library.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

function(sluice_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    $<$<BOOL:${SLUICE_WERROR}>:-Werror>
  )
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 sees overlaps where a string is assigned a literal (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
endfunction()

# For programs, never for libraries: a hardened library would force these choices on its users.
function(sluice_hardening target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  target_compile_options(${target} PRIVATE -fstack-protector-strong)
  target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
    target_compile_options(${target} PRIVATE -fstack-clash-protection -fcf-protection=full)
  endif()
  if(SLUICE_SANITIZE)
    return()
  endif()
  # _FORTIFY_SOURCE needs an optimized build; a distribution's compiler may already have set a level.
  target_compile_options(${target} PRIVATE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>
    $<$<CXX_COMPILER_ID:GNU>:-ftrivial-auto-var-init=zero>
  )
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
    target_compile_options(${target} PRIVATE -fzero-call-used-regs=used-gpr)
  endif()
endfunction()
