// core/text.h: small helpers on text that the standard library lacks, and tables for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Splits at each `separator`; the empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);

std::string_view trim(std::string_view text);

// `text` fit for a message: control characters become '?', and what is longer than `longest` bytes
// is cut and ends with "...".
std::string printable(std::string_view text, std::size_t longest);

// The member of `known` nearest to `word` by edit distance, or "" when none is within 3 edits
// and half the letters of `word`, but one that goes on behind it with a '-' first: what "unknown
// key" messages offer as a remedy.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// Rows as aligned columns, two spaces apart, first row the heading; columns whose cells all start
// with a digit, sign or "-" (heading aside) align to the right. Ends with a newline.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace regatta
