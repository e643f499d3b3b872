// replay/internal/log_lines.h: the lines of a log and the values in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regatta::replay {

// Ended by a line feed or a carriage return (progress bars); without the codes of colors.
std::vector<std::string> log_lines(std::string_view text);

// The number after the first `marker`, which may have commas between thousands: "tps: 6,922".
std::optional<double> number_after(std::string_view line, std::string_view marker);

// "key ........ value" (Megatron-LM, DeepSpeed), "key  value" after "print]" (long keys of
// DeepSpeed), "key: value" (YAML) or "\"key\": value," (JSON), whatever stands before the key. The
// results are views of `line`.
std::optional<std::pair<std::string_view, std::string_view>> setting_in(std::string_view line);

}  // namespace regatta::replay
