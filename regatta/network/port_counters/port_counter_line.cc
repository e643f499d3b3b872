#include "regatta/network/port_counters/port_counter_line.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::port_counters {
namespace {

constexpr std::size_t kNameMost = 64;

}  // namespace

Error PortCounterLine::error(std::string_view problem) const {
  return {Code::kInvalidInput, fmt::format("{}: {}", place_, problem)};
}

Result<PortCounterLine> PortCounterLine::parse(std::string_view line, const std::string& file,
                                               int number, FieldCount count) {
  PortCounterLine read(split(line, ','), fmt::format("{}:{}", file, number));
  if (read.fields_.size() < count.least || read.fields_.size() > count.most)
    return read.error(
        fmt::format("{} fields; write the {} of the heading", read.fields_.size(), count.most));
  const auto at = parse_number<double>(read.fields_[0]);
  if (!at || !std::isfinite(*at))
    return read.error("at_s is no number of seconds; write it like 12.5");
  read.at_.value = *at;
  REGATTA_TRY_DO(read.check_names("the device or the port", read.device(), read.port()));
  return read;
}

Status PortCounterLine::check_names(std::string_view which, const std::string& one,
                                    const std::string& other) const {
  for (const std::string* const name : {&one, &other})
    if (name->empty() || name->size() > kNameMost)
      return error(
          fmt::format("{} is empty or longer than {} letters; name both", which, kNameMost));
  return {};
}

const std::string& PortCounterLine::field(std::size_t place) const {
  static const std::string none;
  return place < fields_.size() ? fields_[place] : none;
}

Status PortCounterLine::read(std::size_t place, std::optional<std::uint64_t>& count) const {
  count.reset();
  if (field(place).empty()) return {};
  count = parse_number<std::uint64_t>(field(place));
  if (!count)
    return error(
        fmt::format("field {} is no whole number from 0 on; leave it empty where it is "
                    "not known",
                    place + 1));
  return {};
}

}  // namespace regatta::port_counters
