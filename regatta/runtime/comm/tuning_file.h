// comm/tuning_file.h: what was chosen and measured, as JSON for the next run:
// docs/formats/tuning.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {

// What a file may ask for beside 0, which leaves it to the algorithm; what is found out by trying
// lies inside.
inline constexpr std::size_t kChunkBytesLeast = std::size_t{4} << 10;
inline constexpr std::size_t kChunkBytesMost = std::size_t{64} << 20;
inline constexpr int kConnectionsMost = 64;

// "private" or "shared": the buffers that the choice holds for, those of a program or those of
// Communicator::allocate(); "" where it is the same for both.
std::string buffers_of(const TuningChoice& choice);

std::string format_tuning(const std::vector<TuningChoice>& choices);
// "" gives nothing. kInvalidInput names the entry and its key that is missing or wrong.
Result<std::vector<TuningChoice>> parse_tuning(const std::string& text);

}  // namespace regatta::comm
