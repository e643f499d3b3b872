// The kinds of published runs that were compared with predictions.
#include <algorithm>
#include <array>

#include "regatta/model/cost/software_stack.h"

namespace regatta::cost {
namespace {

using workload::Precision;

// Those of the sets that replay/internal/published_run.h names; a test there holds this against
// them.
constexpr std::array kCompared = {
    RunKind{"a100-sxm4-80g", Precision::kFp16, false},
    RunKind{"a100-sxm4-80g", Precision::kBf16, false},
    RunKind{"a100-sxm4-40g", Precision::kBf16, false},
    RunKind{"v100", Precision::kFp16, false},
    RunKind{"t4", Precision::kFp16, false},
    RunKind{"h100-sxm", Precision::kBf16, false},
    RunKind{"h100-sxm", Precision::kFp8, false},
    RunKind{"b200-sxm", Precision::kFp8, false},
    RunKind{"h800-sxm", Precision::kFp8, true},
    RunKind{"h100-sxm", Precision::kBf16, true},
    RunKind{"h100-sxm", Precision::kFp8, true},
    RunKind{"b200-sxm", Precision::kFp8, true},
    RunKind{"gb200", Precision::kFp8, false},
    RunKind{"gb200", Precision::kMxfp8, false},
    RunKind{"gb200", Precision::kNvfp4, false},
    RunKind{"gb300", Precision::kFp8, false},
    RunKind{"gb300", Precision::kMxfp8, false},
    RunKind{"gb300", Precision::kNvfp4, false},
    RunKind{"b200-sxm", Precision::kBf16, true},
    RunKind{"b200-sxm", Precision::kMxfp8, true},
    RunKind{"b300-sxm", Precision::kMxfp8, true},
    RunKind{"gb200", Precision::kFp8, true},
    RunKind{"gb200", Precision::kMxfp8, true},
    RunKind{"gb200", Precision::kNvfp4, true},
    RunKind{"gb300", Precision::kBf16, true},
    RunKind{"gb300", Precision::kMxfp8, true},
};

}  // namespace

bool was_compared(const RunKind& kind) {
  return std::find(kCompared.begin(), kCompared.end(), kind) != kCompared.end();
}

PredictionErrorRange widened(const PredictionErrorRange& range) {
  constexpr double kTimes = 2;
  return {.low = 1 + kTimes * (range.low - 1), .high = 1 + kTimes * (range.high - 1)};
}

}  // namespace regatta::cost
