#include "regatta/runtime/comm/internal/engine/stalled_call.h"

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

std::uint64_t call_in_world(std::uint64_t code, const std::vector<int>& members) {
  constexpr int kRootShift = 32;
  const std::uint64_t root = code >> kRootShift;
  if (!has_root(static_cast<CallKind>(code & 0xffU)) || root >= members.size()) return code;
  const std::uint64_t rest = code & ((std::uint64_t{1} << kRootShift) - 1);
  return rest | static_cast<std::uint64_t>(at(members, root)) << kRootShift;
}

}  // namespace regatta::comm
