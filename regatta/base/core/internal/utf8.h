// core/internal/utf8.h: whether bytes are letters. Source: RFC 3629.
#pragma once

#include <cstddef>
#include <string_view>

namespace regatta {

// How many bytes the first letter of `text` takes, 1 to 4; 0 when they are none, or text is empty.
std::size_t utf8_sequence_length(std::string_view text);

// Where the first byte stands that is of no letter; text.size() when all are letters.
std::size_t utf8_valid_prefix(std::string_view text);

}  // namespace regatta
