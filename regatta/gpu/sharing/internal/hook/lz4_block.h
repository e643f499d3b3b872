// sharing/internal/hook/lz4_block.h: decodes a block of LZ4, in which compilers leave machine code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regatta::sharing::hook {

// None: it is no such block, or decodes to more than `most` bytes. Bytes behind its end are padding
// when `expected` bytes have been decoded.
std::optional<std::string> decode_lz4(std::string_view block, std::uint64_t expected,
                                      std::uint64_t most);

}  // namespace regatta::sharing::hook
