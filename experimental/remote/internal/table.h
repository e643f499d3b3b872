// experimental/remote/internal/table.h: the forwarded rows of calls.inc, as numbers and types, from
// which the client's functions and the server's are made.
#pragma once

#include "experimental/remote/internal/launch_argument_kinds.h"
#include "regatta/base/core/stats.h"

namespace regatta::remote {

enum class CallNumber : std::uint16_t {
#define CALL(base, symbol, ...) symbol,
#define TWIN CALL
#define HAND CALL
#include "experimental/remote/internal/calls.inc"
  kCount,
};

enum class Mode : std::uint8_t { kWait, kSend };

template <Mode mode, typename... K>
struct Kinds {
  static constexpr bool has_result = (K::has_result || ...);
  static_assert(mode == Mode::kWait || !has_result, "nobody would wait for the result");
};

template <CallNumber number>
struct Row;
#define CALL(base, symbol, since, mode, ...)                        \
  template <>                                                       \
  struct Row<CallNumber::symbol> {                                  \
    static constexpr const char* name = #symbol;                    \
    using Arguments = Kinds<Mode::mode __VA_OPT__(, ) __VA_ARGS__>; \
  };
#define TWIN CALL
#define HAND CALL
#include "experimental/remote/internal/calls.inc"

// Two builds are compatible when they have the same table.
constexpr std::uint64_t table_mark() {
  std::uint64_t mark = kFnv1aBasis;
#define ROW(...) \
  mark = fnv1a({#__VA_ARGS__, sizeof #__VA_ARGS__}, mark);  // with the zero at its end
#define CALL(...) ROW(__VA_ARGS__)
#define TWIN(...) ROW(__VA_ARGS__)
#define HAND(...) ROW(__VA_ARGS__)
#include "experimental/remote/internal/calls.inc"
#undef ROW
  return mark;
}

// Calls after which functions and modules may be gone.
constexpr bool ends_functions(CallNumber number) {
  switch (number) {
    case CallNumber::cuCtxDestroy_v2:
    case CallNumber::cuDevicePrimaryCtxRelease:
    case CallNumber::cuDevicePrimaryCtxRelease_v2:
    case CallNumber::cuDevicePrimaryCtxReset:
    case CallNumber::cuDevicePrimaryCtxReset_v2:
    case CallNumber::cuModuleUnload:
    case CallNumber::cuLibraryUnload:
      return true;
    default:
      return false;
  }
}

}  // namespace regatta::remote
