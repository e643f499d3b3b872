#include "regatta/model/collective/schedule.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::collective {

StepIndex CollectiveSchedule::add(const Step& step, std::initializer_list<StepIndex> after) {
  const auto index = static_cast<StepIndex>(steps_.size());
  steps_.push_back(step);
  for (const StepIndex earlier : after)
    wait_for(index, earlier);
  return index;
}

StepIndex CollectiveSchedule::add_call(std::function<void()> work,
                                       std::initializer_list<StepIndex> after) {
  const auto number = static_cast<std::uint32_t>(calls_.size());
  calls_.push_back(std::move(work));
  return add({.kind = StepKind::kCall, .tag = number}, after);
}

void CollectiveSchedule::wait_for(StepIndex step, StepIndex earlier) {
  REGATTA_CHECK(earlier < step && step < steps_.size());
  edges_.emplace_back(earlier, step);
}

std::byte* CollectiveSchedule::scratch(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  alignas(kLine) static std::byte nowhere[kLine];
  const std::size_t whole = (bytes + kLine) / kLine * kLine;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kLine, whole));
  if (memory == nullptr) {
    lacked_bytes_ += bytes;
    return nowhere;
  }
  scratch_.emplace_back(memory);
  return memory;
}

void CollectiveSchedule::Free::operator()(std::byte* memory) const {
  std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc): aligned_alloc gave it
}

}  // namespace regatta::collective
