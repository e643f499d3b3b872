// store/internal/crc32c.h: the checksum CRC-32C (Castagnoli, reflected polynomial 0x82f63b78).
// Source: RFC 3720, appendix B.4.
#pragma once

#include <cstdint>
#include <string_view>

namespace regatta::store {

// The checksum of the bytes so far and `bytes`; `before`: 0, or the checksum of the bytes so far.
// By the processor's instruction where it has one (SSE4.2), else by a table.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

// The same by the table, for the test and for other processors.
std::uint32_t crc32c_by_table(std::string_view bytes, std::uint32_t before = 0);

}  // namespace regatta::store
