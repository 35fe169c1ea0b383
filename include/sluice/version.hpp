// The version of these headers, for the preprocessor. CMake reads it here, and the programs print
// it. docs/releasing.md says what it promises. Threading: constants.
#pragma once

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0

/// The version as a number that rises with it: `#if SLUICE_VERSION >= 1002` is true from 0.1.2 on.
#define SLUICE_VERSION \
  (SLUICE_VERSION_MAJOR * 1000000 + SLUICE_VERSION_MINOR * 1000 + SLUICE_VERSION_PATCH)

/// The version as text.
#define SLUICE_VERSION_STRING "0.1.0"
