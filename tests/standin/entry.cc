#include "tests/standin/entry.h"

#include <utility>

#include "tests/standin/api.h"
#include "tests/standin/checkpoint.h"
#include "tests/standin/fault.h"
#include "tests/standin/process.h"

// The driver's own functions are declared now, as standin_NAME; from here on NAME is what it
// exports.
#include "unnames.h"

namespace {

using regatta::standin::CallScope;
using regatta::standin::has_faults;
using regatta::standin::next_fault;
using regatta::standin::passes_lock;
using regatta::standin::per_thread_default;

constexpr std::string_view name_of(int row) {
  switch (row) {
#define SYMBOL(base, symbol, since) \
  case __LINE__:                    \
    return #symbol;
#define TWIN(base, symbol, twin, since) \
  case __LINE__:                        \
    return #twin;
#include "tests/standin/symbols.inc"
#undef SYMBOL
#undef TWIN
    default:
      return "";
  }
}

template <auto function, int row, bool own_stream>
struct Entry;
template <typename... Arguments, CUresult (*function)(Arguments...), int row, bool own_stream>
struct Entry<function, row, own_stream> {
  static CUresult call(Arguments... arguments) {
    if constexpr (passes_lock(name_of(row))) {
      return begun(arguments...);
    } else {
      const CallScope in_call;
      return in_call.refusal() != CUDA_SUCCESS ? in_call.refusal() : begun(arguments...);
    }
  }
  static CUresult begun(Arguments... arguments) {
    if (has_faults())
      if (const CUresult fault = next_fault(name_of(row)); fault != CUDA_SUCCESS) return fault;
    if constexpr (!own_stream) {
      return function(arguments...);
    } else {
      const bool before = std::exchange(per_thread_default(), true);
      const CUresult result = function(arguments...);
      per_thread_default() = before;
      return result;
    }
  }
};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

// The linker asks once which function an entry is, before sanitizers are there.
#define WITHOUT_SANITIZERS \
  __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#define EXPORT(name, own, own_stream)                  \
  WITHOUT_SANITIZERS decltype(&own) resolve_##name() { \
    return &Entry<&own, __LINE__, own_stream>::call;   \
  }                                                    \
  decltype(own) name __attribute__((ifunc("resolve_" #name)));
#define SYMBOL(base, symbol, since) EXPORT(symbol, standin_##symbol, false)
#define TWIN(base, symbol, twin, since) EXPORT(twin, standin_##symbol, true)
#include "tests/standin/symbols.inc"
#undef SYMBOL
#undef TWIN

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace regatta::standin {

Found find_entry(std::string_view base, int version, bool own_stream) {
  struct Row {
    std::string_view base;
    void* address;
    int since;
    bool is_twin;
  };
  static const Row rows[] = {
#define SYMBOL(base, symbol, since) {#base, reinterpret_cast<void*>(&symbol), since, false},
#define TWIN(base, symbol, twin, since) {#base, reinterpret_cast<void*>(&twin), since, true},
#include "tests/standin/symbols.inc"
#undef SYMBOL
#undef TWIN
  };
  const Row* best = nullptr;
  bool is_known = false;
  for (const Row& row : rows) {
    if (row.base != base || (row.is_twin && !own_stream)) continue;
    is_known = true;
    if (row.since > version) continue;
    if (best == nullptr || row.is_twin > best->is_twin ||
        (row.is_twin == best->is_twin && row.since > best->since))
      best = &row;
  }
  return {best == nullptr ? nullptr : best->address, is_known};
}

}  // namespace regatta::standin
