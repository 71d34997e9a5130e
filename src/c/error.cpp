// SPDX-License-Identifier: Apache-2.0
#include "glidepath/error.hpp"

#include "glidepath/version.hpp"

#include <exception>
#include <new>

#include "c/boundary.hpp"

namespace glidepath::c {
namespace {

std::string& last_error() noexcept {
  thread_local std::string text;
  return text;
}

glidepath_status failed(glidepath_status status, const char* why) noexcept {
  try {
    last_error() = why;
  } catch (...) {
    last_error().clear();  // no memory for the sentence: the status alone has to do
  }
  return status;
}

}  // namespace

glidepath_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const InputError& error) {
    return failed(GLIDEPATH_INPUT_ERROR, error.what());
  } catch (const IoError& error) {
    return failed(GLIDEPATH_IO_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return failed(GLIDEPATH_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(GLIDEPATH_INTERNAL_ERROR, error.what());
  } catch (...) {
    return failed(GLIDEPATH_INTERNAL_ERROR, "an unknown exception");
  }
}

void check_size(std::size_t size, const char* name) {
  constexpr std::size_t kMaxSize = 4096;
  // One that ends within a field would leave half a pointer.
  if (size < sizeof(std::size_t) || size > kMaxSize || size % alignof(void*) != 0) {
    detail::refuse(name, ": its size is ", size, "; GLIDEPATH_INIT sets it");
  }
}

}  // namespace glidepath::c

const char* glidepath_last_error(void) { return glidepath::c::last_error().c_str(); }

const char* glidepath_version(void) { return GLIDEPATH_VERSION; }
