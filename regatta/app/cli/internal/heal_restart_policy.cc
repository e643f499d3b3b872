#include "regatta/app/cli/internal/heal_restart_policy.h"

#include <utility>

namespace regatta::cli {
namespace {

constexpr int kForgets = 3;
constexpr Seconds kEarlyEnd{1};
constexpr Seconds kEarlyHang{10};

}  // namespace

bool RestartPolicy::end(Seconds now, Seconds hung) {
  if (std::exchange(is_counted_, true)) return false;
  const Seconds worked = now - hung - started_;
  const bool is_early = worked < (hung > Seconds{} ? kEarlyHang : kEarlyEnd);
  early_ends_ = is_early ? early_ends_ + 1 : 0;
  return early_ends_ >= kForgets;
}

void RestartPolicy::restart(Seconds now) {
  started_ = now;
  is_counted_ = false;
}

}  // namespace regatta::cli
