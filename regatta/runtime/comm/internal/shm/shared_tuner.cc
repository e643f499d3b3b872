#include "regatta/runtime/comm/internal/shm/shared_tuner.h"

#include <algorithm>
#include <bit>

namespace regatta::comm {

SharedTuner::SharedTuner(const Setup& setup)
    : ranks_(setup.ranks),
      tuner_({.ranks = setup.ranks,
              .servers = 1,
              .space = shared_memory_tuning_space(setup.forced),
              .measure = setup.measure}) {
  tuner_.load(setup.loaded);
}

std::size_t SharedTuner::begin(const Call& call) {
  const MutexLock lock(mutex_);
  const auto [setting, ticket] = tuner_.next({call.kind, whole_bytes(call, ranks_)});
  now_ = {.ticket = ticket, .is_rooted = has_root(call.kind)};
  return setting.chunk_bytes;
}

void SharedTuner::learn(const std::vector<double>& times_s) {
  const MutexLock lock(mutex_);
  const auto [least, most] = std::minmax_element(times_s.begin(), times_s.end());
  if (before_.is_staged && *least >= 0)
    tuner_.give(before_.ticket, Seconds{before_.is_rooted ? *most : *least});
  else
    tuner_.skip(before_.ticket);
}

void SharedTuner::end(const Call& call, Seconds took, bool is_staged) {
  before_ = now_;
  now_ = {};
  before_.took_s = took.value;
  before_.is_staged = is_staged;
  if (is_staged) return;
  const MutexLock lock(mutex_);
  const std::size_t bytes = std::max<std::size_t>(whole_bytes(call, ranks_), 1);
  InPlace& calls = in_place_[{call.kind, std::bit_floor(bytes)}];
  calls.least = calls.calls == 0 ? took : std::min(calls.least, took);
  ++calls.calls;
}

std::vector<TuningChoice> SharedTuner::choices() const {
  const MutexLock lock(mutex_);
  std::vector<TuningChoice> choices = tuner_.choices();
  // begin() counted a call between shared buffers as a staged one.
  std::erase_if(choices, [&](const TuningChoice& choice) REGATTA_REQUIRES(mutex_) {
    const auto found = in_place_.find({choice.kind, choice.bytes_from});
    return found != in_place_.end() && found->second.calls >= choice.calls;
  });
  const auto add = [&](CallKind kind, std::size_t bytes, const MeasuredSetting& only) {
    choices.push_back({.kind = kind,
                       .bytes_from = bytes,
                       .ranks = ranks_,
                       .servers = 1,
                       .reason = ChoiceReason::kOnlyOne,
                       .tried = {only},
                       .calls = only.calls});
  };
  for (const auto& [key, calls] : in_place_)
    add(key.first, key.second,
        {.setting = {.algorithm = Algorithm::kInPlace},
         .observed = calls.least,
         .calls = calls.calls});
  for (std::size_t kind = 0; kind < kCallKinds; ++kind)
    if (const long long calls = small_calls_[kind].load(std::memory_order_relaxed); calls > 0)
      add(static_cast<CallKind>(kind), 0,
          {.setting = {.algorithm = Algorithm::kOneShot}, .calls = calls});
  return choices;
}

bool SharedTuner::is_settled() const {
  const MutexLock lock(mutex_);
  return tuner_.is_settled();
}

}  // namespace regatta::comm
