// tests/standin/entry.h: the functions that the driver exports. Each calls its namesake within the
// driver, which CMakeLists.txt has renamed, unless a test wants the call to fail.
#pragma once

#include <string_view>

namespace regatta::standin {

inline constexpr int kDriverVersion = 13000;

struct Found {
  void* address = nullptr;  // null: the version has no variant of it
  bool is_known = false;
};
// The newest variant of `base` at or before `version`, that with the thread's own stream as the
// default where it is wanted and there is one.
Found find_entry(std::string_view base, int version, bool own_stream);

}  // namespace regatta::standin
