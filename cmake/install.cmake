# What is installed: one export set per component, so that a component left out is a missing file
# that sluice-config.cmake can name. The COMPONENT of a rule is the Debian package that has the files (packages.cmake).
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")

# Relocatable: a pkg-config file finds the prefix from the folder it lies in.
file(RELATIVE_PATH SLUICE_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" SLUICE_PC_TO_PREFIX "${SLUICE_PC_TO_PREFIX}")

# A static library leaves its own libraries to whoever links it.
set(redis_uses "hiredis >= 0.14")
if(openssl_FOUND)
  string(APPEND redis_uses ", openssl >= 1.1.1")
endif()
if(BUILD_SHARED_LIBS)
  set(SLUICE_PC_REDIS_REQUIRES
    "Requires: sluice = ${PROJECT_VERSION}\nRequires.private: ${redis_uses}"
  )
else()
  set(SLUICE_PC_REDIS_REQUIRES "Requires: sluice = ${PROJECT_VERSION}, ${redis_uses}")
endif()

# The date library has no pkg-config file.
set(SLUICE_PC_TIMEZONE_LIBS "")
if(NOT SLUICE_STD_TZDB AND NOT BUILD_SHARED_LIBS)
  set(SLUICE_PC_TIMEZONE_LIBS " -ldate-tz")
endif()

function(sluice_install component)
  set(target sluice_${component})
  if(component STREQUAL "sluice")
    set(target sluice)
  endif()
  if(NOT TARGET ${target})
    return()
  endif()
  install(TARGETS ${target} EXPORT sluice-${component}-targets
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT libsluice
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libsluice NAMELINK_COMPONENT libsluice-dev
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libsluice-dev
  )
  install(EXPORT sluice-${component}-targets NAMESPACE sluice:: DESTINATION "${package_folder}"
    COMPONENT libsluice-dev
  )

  get_target_property(kind ${target} TYPE)
  if(NOT kind STREQUAL "INTERFACE_LIBRARY")
    get_target_property(name ${target} OUTPUT_NAME)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc"
      DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT libsluice-dev
    )
  endif()
endfunction()

foreach(component sluice asio config redis sim testing timezone world)
  sluice_install(${component})
endforeach()

set(headers_left_out "")
if(NOT SLUICE_ASIO)
  list(APPEND headers_left_out PATTERN "asio*" EXCLUDE PATTERN "adapters/beast.hpp" EXCLUDE)
endif()
if(NOT SLUICE_CONFIG)
  list(APPEND headers_left_out PATTERN "config" EXCLUDE)
endif()
if(NOT SLUICE_REDIS)
  list(APPEND headers_left_out PATTERN "redis" EXCLUDE)
endif()
if(NOT SLUICE_TIMEZONE)
  list(APPEND headers_left_out PATTERN "timezone" EXCLUDE)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/sluice"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT libsluice-dev
  FILES_MATCHING PATTERN "*.hpp" ${headers_left_out}
)
if(SLUICE_SIM)
  set(headers_left_out "")
  if(NOT SLUICE_ASIO)
    foreach(name IN ITEMS figures rehearse resource run scenario warm_up worker_clock)
      list(APPEND headers_left_out PATTERN "sim/${name}.hpp" EXCLUDE)
    endforeach()
    list(APPEND headers_left_out PATTERN "world*" EXCLUDE)
  endif()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/sim/include/sluice"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT libsluice-dev
    FILES_MATCHING PATTERN "*.hpp" ${headers_left_out}
  )
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/sluice-config.cmake"
  INSTALL_DESTINATION "${package_folder}"
)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/sluice-config-version.cmake"
  COMPATIBILITY SameMinorVersion
)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/sluice-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/sluice-config-version.cmake"
  DESTINATION "${package_folder}" COMPONENT libsluice-dev
)

if(TARGET sluice_redis)
  install(FILES "${PROJECT_BINARY_DIR}/backends/redis/redis_functions.lua"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice" COMPONENT libsluice-dev
  )
endif()

if(TARGET sluice-sim)
  # Where the programs look, relative to themselves: scenarios, and the page of reports if it was built.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/scenarios"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice" COMPONENT sluice-tools
    FILES_MATCHING PATTERN "*.toml" PATTERN "*.csv" PATTERN "*.figures"
  )
  install(FILES "${PROJECT_SOURCE_DIR}/sim/report/dist/report.html"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sluice" COMPONENT sluice-tools OPTIONAL
  )
endif()
foreach(program sluice-sim sluice-demo sluice-tool)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT sluice-tools)
  endif()
endforeach()
