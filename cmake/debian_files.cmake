# CPack runs this before it packs a folder of files for each package: to each it adds the copyright, the changelogs and
# the manual pages.
cmake_minimum_required(VERSION 3.25)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
if(NOT CPACK_PACKAGING_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "Debian packages are for /usr, not for ${CPACK_PACKAGING_INSTALL_PREFIX}: configure with "
    "-DCMAKE_INSTALL_PREFIX=/usr, or run ./dev package")
endif()

function(compress)
  execute_process(COMMAND gzip -9n ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(staged "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
file(GLOB libraries "${staged}/libsluice/usr/lib/*" "${staged}/libsluice/usr/lib")
list(JOIN libraries ":" libraries)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} package)
  set(name ${CPACK_DEBIAN_${package}_PACKAGE_NAME})
  set(docs "${staged}/${component}/usr/share/doc/${name}")
  file(MAKE_DIRECTORY "${docs}")
  configure_file("${CPACK_SLUICE_SOURCE}/LICENSE" "${docs}/copyright" COPYONLY)
  if(component STREQUAL "sluice-doc")
    file(APPEND "${docs}/copyright" "\nThe site contains jQuery, Copyright OpenJS Foundation and other contributors, and where its \
style is doxygen-awesome, that is Copyright 2021-2023 jothepro; both under the same license.\n")
  elseif(EXISTS "${staged}/${component}/usr/share/sluice/report.html")
    file(APPEND "${docs}/copyright" "\n/usr/share/sluice/report.html contains Apache ECharts, Copyright The Apache Software \
Foundation, under the Apache License 2.0: /usr/share/common-licenses/Apache-2.0.\n")
  endif()
  configure_file("${CPACK_SLUICE_SOURCE}/CHANGELOG.md" "${docs}/changelog" COPYONLY)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, if that is set
  file(WRITE "${docs}/changelog.Debian"
"sluice (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) stable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: changelog.gz says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  compress("${docs}/changelog" "${docs}/changelog.Debian")
  if(component STREQUAL "libsluice")
    # CPack writes scripts that call ldconfig, and cannot be told to leave that to the trigger.
    file(WRITE "${staged}/${component}/usr/share/lintian/overrides/${name}" "maintscript-calls-ldconfig\n")
  endif()

  file(GLOB programs "${staged}/${component}/usr/bin/*")
  foreach(program IN LISTS programs)
    get_filename_component(stem "${program}" NAME)
    set(page "${staged}/${component}/usr/share/man/man1/${stem}.1")
    get_filename_component(folder "${page}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${libraries}"
      help2man --no-info --help-option=--help-all "--name=${CPACK_SLUICE_ABOUT_${stem}}" "${program}"
      OUTPUT_VARIABLE text RESULT_VARIABLE failed
    )
    if(failed)
      message(FATAL_ERROR "There is no manual page of ${stem} without help2man, Debian's package of that name")
    endif()
    # A heading for each command.
    string(REPLACE ".PP\nSubcommands:\n" ".SH COMMANDS\n.PP\n" text "${text}")
    string(REGEX REPLACE "\\.PP\n([a-z]+)\n\\.IP\n" ".SS \\1\n" text "${text}")
    string(REGEX REPLACE "(\\.IP\n)?(Positionals|Options):\n" ".PP\n\\2:\n" text "${text}")
    file(WRITE "${page}" "${text}")
    compress("${page}")
  endforeach()
  execute_process(COMMAND chmod -R u=rwX,go=rX "${staged}/${component}" COMMAND_ERROR_IS_FATAL ANY)  # whatever the umask is
endforeach()
