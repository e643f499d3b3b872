#include "regatta/runtime/agent/internal/failure_cause.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::agent {
namespace {

int weight(CauseKind kind) {
  switch (kind) {
    case CauseKind::kServerLost:
      return 0;
    case CauseKind::kCarrierLost:
    case CauseKind::kWorkerLost:
      return 1;
    case CauseKind::kPeerTrouble:
      return 2;
  }
  return 2;
}

}  // namespace

const Cause& root_cause(const std::vector<Cause>& causes) {
  REGATTA_CHECK(!causes.empty());
  return *std::min_element(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) {
    return std::pair(weight(a.kind), a.at) < std::pair(weight(b.kind), b.at);
  });
}

}  // namespace regatta::agent
