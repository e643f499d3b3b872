// Places for pending jobs on devices that they share with others: sched/internal/start_pass.h.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/start_pass.h"

namespace regatta::sched {

std::optional<GangPlacement> StartPass::mix(const JobRequest& job, const StartView& view, int shape,
                                            bool is_shared_only) {
  if (failed_mixes_.count({view.reservations, shape, is_shared_only}) > 0) return std::nullopt;
  auto placement = place_mixed(state_, {.job = job,
                                        .size = smallest_size(job),
                                        .kept = {},
                                        .free = view.free,
                                        .reservations = view.reservations,
                                        .is_shared_only = is_shared_only});
  if (!placement) failed_mixes_.emplace(view.reservations, shape, is_shared_only);
  return placement;
}

std::optional<GangPlacement> StartPass::place_free_or_mixed(const JobRequest& job,
                                                            const StartView& view, int shape,
                                                            std::string& text) {
  const bool mixes = state_.mixes && may_share_devices(job);
  std::optional<GangPlacement> placement;
  std::string why;
  if (mixes && state_.mixes->prefers_sharing(job)) {
    placement = mix(job, view, shape, true);
    if (placement && !has_failed(view.reservations, shape) && place(view.pending, job, view.free))
      why = fmt::format(
          " though {} would do, as it needs {:.0f} % of one, less than the {:.0f} % of "
          "mix_first_below",
          devices_min(job) == 1 ? "a free device" : "free devices",
          100 * state_.mixes->mean_need(job), 100 * state_.policy.mix_first_below);
  }
  if (!placement && !has_failed(view.reservations, shape)) {
    placement = place(view.pending, job, view.free);
    if (!placement && !state_.precautions.avoided.empty())
      placement = place(view.pending, job, free_with_avoided(state_, view.free));
    if (placement) {
      text = avoided_text(state_, placement->replicas);
      return placement;
    }
    set_failed(view.reservations, shape);
  }
  if (!placement && mixes) placement = mix(job, view, shape, false);
  if (placement) text = sharing_text(state_, placement->replicas) + why;
  return placement;
}

}  // namespace regatta::sched
