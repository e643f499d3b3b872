// core/json_line.h: a JSON object as the line that a command prints for other programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Without its end. Fractions have six digits, of large ones three behind the point, so that a time
// since 1970 keeps its milliseconds: what stands behind was not measured. Text that was cut within
// a letter is mended.
std::string json_line(nlohmann::json value);

}  // namespace regatta
