// core/check.h: REGATTA_CHECK names a bug in regatta, never bad input; it stays on in every build.
#pragma once

namespace regatta {

// Prints the broken condition and its place to standard error, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace regatta

#define REGATTA_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::regatta::check_failed(#condition, __FILE__, __LINE__))
