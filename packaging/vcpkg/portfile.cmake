# An overlay port of vcpkg for the checkout that it lies in:
#
#   vcpkg install "sluice[asio,redis]" --overlay-ports=packaging/vcpkg
#
# Run: vcpkg of August 2026 took the port with its feature sim, configured it and compiled 82 of 211 files; then the run was
# ended. Not run: what comes after vcpkg_cmake_install(), and the features asio, redis and timezone, whose ports are downloads.
set(SOURCE_PATH "${CURRENT_PORT_DIR}/../..")
vcpkg_check_features(OUT_FEATURE_OPTIONS options
  FEATURES
    asio SLUICE_ASIO
    redis SLUICE_REDIS
    sim SLUICE_SIM
    timezone SLUICE_TIMEZONE
)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${options} -DSLUICE_TESTS=OFF -DSLUICE_EXAMPLES=OFF -DSLUICE_BENCH=OFF -DSLUICE_TOOLS=OFF
    -DSLUICE_CONFIG=OFF # toml++ is no dependency of the port
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/sluice)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
