// port_counters/port_counter_line.h: a line of comma-separated counters of one port at one
// moment, as the formats of docs/formats/pauses.md and switch_counters.md begin and count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::port_counters {

// How many fields a line has: as many as the heading, or fewer where it lacks the last ones.
struct FieldCount {
  std::size_t least = 0;
  std::size_t most = 0;
};

// Errors are of kInvalidInput and begin with file and line.
class PortCounterLine {
 public:
  // A line whose first fields are a time in seconds, a device and a port.
  static Result<PortCounterLine> parse(std::string_view line, const std::string& file, int number,
                                       FieldCount count);

  Seconds at() const { return at_; }
  const std::string& device() const { return fields_[1]; }
  const std::string& port() const { return fields_[2]; }
  // "" for a field that the line lacks.
  const std::string& field(std::size_t place) const;
  // A whole number, or nothing where the field is empty.
  Status read(std::size_t place, std::optional<std::uint64_t>& count) const;
  Error error(std::string_view problem) const;
  // `which`: "the device or the port".
  Status check_names(std::string_view which, const std::string& one,
                     const std::string& other) const;

 private:
  PortCounterLine(std::vector<std::string> fields, std::string place)
      : fields_(std::move(fields)), place_(std::move(place)) {}

  std::vector<std::string> fields_;
  std::string place_;  // "counters.csv:7"
  Seconds at_;
};

}  // namespace regatta::port_counters
