# The Debian packages: `cpack` in a build folder whose prefix is /usr, which ./dev package does. What Debian wants beside
# the installed files, debian_files.cmake writes.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
if(NOT CPACK_PACKAGE_CONTACT)
  set(CPACK_PACKAGE_CONTACT "The Sluice authors <sluice@example.org>")
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake")
set(CPACK_SLUICE_SOURCE "${PROJECT_SOURCE_DIR}")
set(CPACK_SLUICE_ABOUT_sluice "show and change the rate limits on a Redis server")
set(CPACK_SLUICE_ABOUT_sluice-sim "simulate what a rate limit does")
set(CPACK_SLUICE_ABOUT_sluice-demo "show what rate limits are for")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 0sluice1)  # Debian's own, if there ever is one, is newer
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SOURCE sluice)

# sluice_package(<component> <section> <summary> <line>...)
macro(sluice_package component section summary)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} package)
  set(CPACK_DEBIAN_${package}_PACKAGE_NAME ${component})
  set(CPACK_DEBIAN_${package}_PACKAGE_SECTION ${section})
  string(JOIN "\n" CPACK_DEBIAN_${package}_DESCRIPTION "${summary}"
    "Sluice decides whether a call may go ahead and, if not, when exactly. One limit"
    "serves a thread, a process, or a fleet that shares a Redis server." ${ARGN}
  )
endmacro()

set(CPACK_COMPONENTS_ALL "")
if(BUILD_SHARED_LIBS)
  sluice_package(libsluice libs "rate limiting in C++: shared libraries")
  # A program that is linked with one minor version never meets another.
  set(CPACK_DEBIAN_LIBSLUICE_PACKAGE_NAME libsluice${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(CPACK_DEBIAN_LIBSLUICE_PACKAGE_SHLIBDEPS ON)
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/triggers" "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_LIBSLUICE_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_BINARY_DIR}/triggers")
  set(CPACK_COMPONENT_LIBSLUICE-DEV_DEPENDS libsluice)
  set(CPACK_COMPONENT_SLUICE-TOOLS_DEPENDS libsluice)
endif()

sluice_package(libsluice-dev libdevel "rate limiting in C++: headers, CMake and pkg-config files"
  "This package is for building programs that use it."
)
# What sluice-config.cmake asks for.
set(needs "")
if(SLUICE_ASIO OR SLUICE_REDIS)
  list(APPEND needs "libboost1.81-dev | libboost-dev (>= 1.81)")
endif()
if(SLUICE_REDIS)
  list(APPEND needs "libhiredis-dev (>= 0.14)" "pkg-config")
  if(openssl_FOUND)
    list(APPEND needs "libssl-dev")
  endif()
endif()
if(SLUICE_TIMEZONE AND NOT SLUICE_STD_TZDB)
  list(APPEND needs libhowardhinnant-date-dev)
endif()
list(JOIN needs ", " CPACK_DEBIAN_LIBSLUICE-DEV_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_LIBSLUICE-DEV_PACKAGE_SUGGESTS sluice-doc)

if(SLUICE_TOOLS)
  sluice_package(sluice-tools utils "rate limits on Redis: inspection and simulation"
    "The program sluice shows the limits on a Redis server, sluice-sim what a limit"
    "will do and would have done, and sluice-demo what it is for."
  )
  set(CPACK_DEBIAN_SLUICE-TOOLS_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_SLUICE-TOOLS_PACKAGE_SUGGESTS "redis-server, sluice-doc")
endif()
# The programs' own libraries, for dpkg-shlibdeps.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "")
foreach(target sluice sluice_config sluice_redis sluice_sim sluice_testing sluice_timezone sluice_world)
  if(TARGET ${target})
    get_target_property(folder ${target} BINARY_DIR)
    list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${folder}")
  endif()
endforeach()

# The site that ./dev docs made, if it did.
set(site "${PROJECT_SOURCE_DIR}/build/docs/html")
if(EXISTS "${site}/index.html")
  install(DIRECTORY "${site}" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/sluice-doc" COMPONENT sluice-doc EXCLUDE_FROM_ALL)
  sluice_package(sluice-doc doc "rate limiting in C++: guides and reference" "This package is its site.")
  set(CPACK_DEBIAN_SLUICE-DOC_PACKAGE_ARCHITECTURE all)
endif()
include(CPack)
