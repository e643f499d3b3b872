#include "regatta/gpu/sharing/internal/hook/lz4_block.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::size_t kLeastMatch = 4;

// The rest of a length of which the token has 4 bits: bytes of 255, and a smaller one.
bool read_length(std::string_view& block, std::size_t& length) {
  if (length != 15) return true;
  for (unsigned char byte = 255; byte == 255;) {
    if (block.empty()) return false;
    byte = static_cast<unsigned char>(block.front());
    block.remove_prefix(1);
    length += byte;
  }
  return true;
}

}  // namespace

std::optional<std::string> decode_lz4(std::string_view block, std::uint64_t expected,
                                      std::uint64_t most) {
  if (expected > most) return std::nullopt;
  std::string made;
  made.reserve(expected);
  while (made.size() < expected) {
    if (block.empty()) return std::nullopt;
    const auto token = static_cast<unsigned char>(block.front());
    block.remove_prefix(1);
    std::size_t literals = token >> 4;
    if (!read_length(block, literals) || literals > block.size() ||
        literals > expected - made.size())
      return std::nullopt;
    made.append(block.substr(0, literals));
    block.remove_prefix(literals);
    if (made.size() == expected) break;
    if (block.size() < 2) return std::nullopt;
    const std::size_t offset = static_cast<unsigned char>(block[0]) |
                               std::size_t{static_cast<unsigned char>(block[1])} << 8;
    block.remove_prefix(2);
    std::size_t match = token & 15U;
    if (!read_length(block, match)) return std::nullopt;
    match += kLeastMatch;
    if (offset == 0 || offset > made.size() || match > expected - made.size()) return std::nullopt;
    for (std::size_t i = 0; i < match; ++i)  // what it repeats may overlap what it makes
      made.push_back(made[made.size() - offset]);
  }
  return made;
}

}  // namespace regatta::sharing::hook
