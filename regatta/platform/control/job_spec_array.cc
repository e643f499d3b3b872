// Arrays of jobs: "0-99:2,200%10".
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/platform/control/job_spec.h"

namespace regatta::control {
namespace {

constexpr int kIndexMost = 1'000'000'000;

// "7", "0-99" or "0-99:2".
std::optional<ArrayRange> parse_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view ends = text.substr(0, colon);
  const std::size_t dash = ends.find('-');
  const auto first = parse_number<int>(ends.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : parse_number<int>(ends.substr(dash + 1));
  const auto step = colon == std::string_view::npos ? std::optional(1)
                                                    : parse_number<int>(text.substr(colon + 1));
  if (!first || !last || !step || *first < 0 || *last < *first || *last > kIndexMost || *step < 1)
    return std::nullopt;
  return ArrayRange{.first = *first, .last = *last, .step = *step};
}

Error wrong_array(std::string_view text) {
  return {Code::kInvalidInput,
          fmt::format("'{}' is no rising list of indices; write it like 0-99, 1,5,7 or 0-99:2%10",
                      printable(text, 60))};
}

}  // namespace

int JobArray::size() const {
  int count = 0;
  for (const ArrayRange& range : ranges)
    count += (range.last - range.first) / range.step + 1;
  return count;
}

int JobArray::index_at(int position) const {
  for (const ArrayRange& range : ranges) {
    const int count = (range.last - range.first) / range.step + 1;
    if (position < count) return range.first + position * range.step;
    position -= count;
  }
  return -1;
}

int JobArray::position_of(int index) const {
  int before = 0;
  for (const ArrayRange& range : ranges) {
    if (index >= range.first && index <= range.last && (index - range.first) % range.step == 0)
      return before + (index - range.first) / range.step;
    before += (range.last - range.first) / range.step + 1;
  }
  return -1;
}

Result<JobArray> parse_job_array(std::string_view text) {
  JobArray array;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const auto limit = parse_number<int>(text.substr(percent + 1));
    if (!limit || *limit < 1) return wrong_array(text);
    array.limit = *limit;
  }
  long long count = 0;
  for (const std::string& part : split(text.substr(0, percent), ',')) {
    const auto range = parse_range(part);
    if (!range || (!array.ranges.empty() && range->first <= array.ranges.back().last))
      return wrong_array(text);
    count += (range->last - range->first) / range->step + 1;
    array.ranges.push_back(*range);
  }
  if (count > kArrayMost)
    return Error{Code::kInvalidInput,
                 fmt::format("{} indices, and at most {} are taken; submit several arrays", count,
                             kArrayMost)};
  return array;
}

}  // namespace regatta::control
