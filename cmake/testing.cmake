# SPDX-License-Identifier: Apache-2.0
find_package(GTest REQUIRED)
include(GoogleTest)

# glidepath_add_test(fit_test.cpp): one program, each of its tests known to CTest.
# Tests may look behind the public headers, so src/ is on their include path.
function(glidepath_add_test source)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  target_link_libraries(
    ${name} PRIVATE glidepath_static glidepath_warnings Eigen3::Eigen GTest::gtest_main
                    OpenMP::OpenMP_CXX ZLIB::ZLIB
  )
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(
    ${name}
    PRIVATE GLIDEPATH_DATA="${PROJECT_SOURCE_DIR}/data"
            GLIDEPATH_SHARED="${PROJECT_SOURCE_DIR}/../shared"
  )
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    # A sanitizer takes longer to start than most tests to run: one start a program.
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES)
  endif()
endfunction()
