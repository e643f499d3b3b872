#include "regatta/platform/store/internal/crc32c.h"

#include <string>

#include <gtest/gtest.h>

namespace regatta::store {
namespace {

// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
TEST(Crc32c, GivesThePublishedChecksums) {
  std::string rising;
  for (char byte = 0; byte < 32; ++byte)
    rising += byte;
  for (const auto& [bytes, expected] : {std::pair{std::string(32, '\0'), 0x8a9136aaU},
                                        {std::string(32, '\xff'), 0x62a8ab43U},
                                        {rising, 0x46dd794eU},
                                        {std::string("123456789"), 0xe3069283U},
                                        {std::string(), 0U}}) {
    EXPECT_EQ(crc32c(bytes), expected);
    EXPECT_EQ(crc32c_by_table(bytes), expected);
  }
}

TEST(Crc32c, OfPartsIsThatOfTheWhole) {
  const std::string text = "a text that is longer than two words of the processor";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::uint32_t first = crc32c(std::string_view(text).substr(0, cut));
    EXPECT_EQ(crc32c(std::string_view(text).substr(cut), first), crc32c_by_table(text));
  }
}

}  // namespace
}  // namespace regatta::store
