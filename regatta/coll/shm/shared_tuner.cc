#include "regatta/coll/shm/shared_tuner.h"

#include <algorithm>
#include <bit>

namespace regatta::coll {
namespace {

bool is_rooted(CallKind kind) {
  return kind == CallKind::kBroadcast || kind == CallKind::kReduce || kind == CallKind::kGather ||
         kind == CallKind::kScatter;
}

}  // namespace

SharedTuner::SharedTuner(Setup setup)
    : ranks_(setup.ranks),
      tuner_({.ranks = setup.ranks,
              .servers = 1,
              .ways = shared_ways(setup.forced),
              .measure = setup.measure}) {
  tuner_.load(setup.loaded);
}

std::size_t SharedTuner::begin(const Call& call) {
  const std::lock_guard lock(mutex_);
  const auto [setting, ticket] = tuner_.next({call.kind, whole_bytes(call, ranks_)});
  now_ = {.ticket = ticket, .is_rooted = is_rooted(call.kind)};
  return setting.chunk_bytes;
}

void SharedTuner::learn(const std::vector<double>& times_s) {
  const std::lock_guard lock(mutex_);
  const auto [least, most] = std::minmax_element(times_s.begin(), times_s.end());
  if (before_.is_staged && *least >= 0)
    tuner_.give(before_.ticket, Seconds{before_.is_rooted ? *most : *least});
  else
    tuner_.skip(before_.ticket);
}

void SharedTuner::end(const Call& call, Seconds took, Algorithm way) {
  before_ = now_;
  now_ = {};
  before_.took_s = took.value;
  before_.is_staged = way == Algorithm::kStaged;
  if (before_.is_staged) return;
  const std::lock_guard lock(mutex_);
  Fixed& fixed =
      fixed_[{call.kind, std::bit_floor(std::max<std::size_t>(whole_bytes(call, ranks_), 1))}];
  fixed.way = way;
  fixed.least = fixed.calls == 0 ? took : std::min(fixed.least, took);
  ++fixed.calls;
}

std::vector<Choice> SharedTuner::choices() const {
  const std::lock_guard lock(mutex_);
  std::vector<Choice> choices = tuner_.choices();
  // A call between buffers that all reach was begun as if it were staged.
  std::erase_if(choices, [&](const Choice& choice) {
    const auto fixed = fixed_.find({choice.kind, choice.bytes_from});
    return fixed != fixed_.end() && fixed->second.calls >= choice.calls;
  });
  for (const auto& [key, fixed] : fixed_) {
    Choice choice{.kind = key.first,
                  .bytes_from = key.second,
                  .ranks = ranks_,
                  .servers = 1,
                  .reason = Reason::kOnlyOne,
                  .calls = fixed.calls};
    choice.tried.push_back({.setting = {.algorithm = fixed.way},
                            .predicted = {},
                            .observed = fixed.least,
                            .calls = fixed.calls});
    choices.push_back(std::move(choice));
  }
  return choices;
}

bool SharedTuner::is_settled() const {
  const std::lock_guard lock(mutex_);
  return tuner_.is_settled();
}

}  // namespace regatta::coll
