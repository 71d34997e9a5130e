# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

install(TARGETS glidepath EXPORT glidepath-targets COMPONENT development)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/glidepath"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.h"
)
install(
  FILES "${PROJECT_BINARY_DIR}/include/glidepath/version.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/glidepath"
  COMPONENT development
)

set(GLIDEPATH_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/glidepath")
install(
  EXPORT glidepath-targets
  NAMESPACE glidepath::
  DESTINATION "${GLIDEPATH_CMAKE_DIR}"
  COMPONENT development
)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/glidepath-config.cmake.in"
  "${PROJECT_BINARY_DIR}/glidepath-config.cmake"
  INSTALL_DESTINATION "${GLIDEPATH_CMAKE_DIR}"
)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/glidepath-config-version.cmake" COMPATIBILITY SameMinorVersion
)
install(
  FILES "${PROJECT_BINARY_DIR}/glidepath-config.cmake"
        "${PROJECT_BINARY_DIR}/glidepath-config-version.cmake"
  DESTINATION "${GLIDEPATH_CMAKE_DIR}"
  COMPONENT development
)

# The prefix follows from where the file lies, since `cmake --install --prefix` may choose another.
file(RELATIVE_PATH GLIDEPATH_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
# `--libs` links as printed: where the library is static, with all that it needs.
set(GLIDEPATH_PC_REQUIRES "")
set(GLIDEPATH_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  set(GLIDEPATH_PC_REQUIRES "libhwy zlib")
  set(GLIDEPATH_PC_LIBS "-fopenmp -lstdc++ -lm") # the last two for programs in C
  if(GLIDEPATH_WITH_CERES)
    string(PREPEND GLIDEPATH_PC_LIBS "-lceres -lglog ")
  endif()
endif()
configure_file(
  "${PROJECT_SOURCE_DIR}/cmake/glidepath.pc.in" "${PROJECT_BINARY_DIR}/glidepath.pc" @ONLY
)
install(
  FILES "${PROJECT_BINARY_DIR}/glidepath.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT development
)
