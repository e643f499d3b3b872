#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/units.h"

namespace regatta {
namespace {

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("80GiB")->value, 80LL << 30);
  EXPECT_EQ(parse_bytes("1.5 KiB")->value, 1536);
  EXPECT_EQ(parse_bytes(" 2MB ")->value, 2'000'000);
  EXPECT_EQ(parse_bytes("12B")->value, 12);
}

TEST(ParseBytesPerSecond, TellsBitsFromBytes) {
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("400Gbps")->value, 50e9);
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("50GB/s")->value, 50e9);
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("100Mbps")->value, 12.5e6);
}

TEST(ParseSeconds, ReadsEveryUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("5us")->value, 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("2min")->value, 120);
  EXPECT_DOUBLE_EQ(parse_seconds("30d")->value, 30 * 86400);
}

TEST(FormatDuration, TakesTheLargestUnit) {
  EXPECT_EQ(format_duration({30 * 86400}), "30 d");
  EXPECT_EQ(format_duration({5400}), "1.50 h");
  EXPECT_EQ(format_duration({0.25}), "250 ms");
}

TEST(ParseFlopsPerSecond, ReadsTeraflops) {
  EXPECT_DOUBLE_EQ(parse_flops_per_second("312TFLOPS")->value, 312e12);
}

TEST(ParseRatio, ReadsPercentAndPlainNumbers) {
  EXPECT_DOUBLE_EQ(*parse_ratio("15%"), 0.15);
  EXPECT_DOUBLE_EQ(*parse_ratio("0.2"), 0.2);
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(ParseBytes, NamesTheRemedyForBadText) {
  const BadText cases[] = {
      {"80", "'80' has no unit; write it like 80GiB"},
      {"GiB", "'GiB' is not a number with a unit; write it like 80GiB"},
      {"80Gbps", "'80Gbps' has the unknown unit 'Gbps'; write it like 80GiB"},
      {"infGiB", "'infGiB' is not a finite number; write it like 80GiB"},
      {"1e30GiB", "'1e30GiB' is too large; write it like 80GiB"},
      {"", "'' is not a number with a unit; write it like 80GiB"},
  };
  for (const BadText& bad : cases) {
    const auto parsed = parse_bytes(bad.text);
    ASSERT_FALSE(parsed.has_value()) << bad.text;
    EXPECT_EQ(parsed.error().message, bad.message);
  }
}

TEST(ParseBytesPerSecond, RefusesHexadecimalAndInfiniteNumbers) {
  for (const char* const text :
       {"0x10Gbps", "0x1p4 Gbps", "1e308Tbps", "1e400bps", "infGbps", "nanGbps", "+-5Gbps"})
    EXPECT_FALSE(parse_bytes_per_second(text)) << text;
  EXPECT_EQ(parse_bytes_per_second("+1e1Gbps")->value, 1.25e9);
  EXPECT_FALSE(parse_ratio("0x1"));
  EXPECT_EQ(parse_seconds("1e-400s")->value, 0);
}

TEST(ParseRatio, RefusesUnits) {
  EXPECT_EQ(parse_ratio("2GiB").error().message, "'2GiB' is not a ratio; write it like 20% or 0.2");
}

TEST(FormatUnits, KeepsThreeSignificantDigits) {
  EXPECT_EQ(format_bytes(Bytes{1536}), "1.50 KiB");
  EXPECT_EQ(format_bytes(Bytes{812}), "812 B");
  EXPECT_EQ(format_bytes(Bytes{0}), "0 B");
  EXPECT_EQ(format_seconds({1.234}), "1.23 s");
  EXPECT_EQ(format_seconds({45.6e-3}), "45.6 ms");
  EXPECT_EQ(format_seconds({4 * 1e-6}), "4 us");
  EXPECT_EQ(format_bits_per_second({12.5e6}), "100 Mbps");
  EXPECT_EQ(format_bytes_per_second({12.34e9}), "12.3 GB/s");
  EXPECT_EQ(format_flops_per_second({312e12}), "312 TFLOPS");
  EXPECT_EQ(format_percent(0.1234), "12.3 %");
}

TEST(FormatUnits, CarriesIntoTheNextUnit) {
  EXPECT_EQ(format_bytes(Bytes{1048575}), "1.00 MiB");
  EXPECT_EQ(format_seconds({0.99999}), "1.00 s");
}

}  // namespace
}  // namespace regatta
