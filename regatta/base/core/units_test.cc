#include "regatta/base/core/units.h"

#include <gtest/gtest.h>

namespace regatta {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): literals are meant for this

TEST(Units, LiteralsAreInBaseUnits) {
  EXPECT_EQ((1_KiB).value, 1024);
  EXPECT_EQ((2_GiB).value, 2147483648LL);
  EXPECT_DOUBLE_EQ((8_Gbps).value, 1e9);
  EXPECT_DOUBLE_EQ((1_GBps).value, 1e9);
  EXPECT_DOUBLE_EQ((5.0_us).value, 5e-6);
  EXPECT_DOUBLE_EQ((3_TFLOPS).value, 3e12);
}

TEST(Units, OnlyMeaningfulProductsExist) {
  EXPECT_DOUBLE_EQ((1_MiB / 8_Mbps).value, 1.048576);
  EXPECT_DOUBLE_EQ((Bytes{100} / 2.0_s).value, 50);
  EXPECT_DOUBLE_EQ((Flops{6e12} / 3_TFLOPS).value, 2);
  EXPECT_DOUBLE_EQ((Flops{6e12} / 2.0_s).value, 3e12);
  EXPECT_DOUBLE_EQ(4_GiB / 1_GiB, 4);
}

TEST(Units, AddAndCompare) {
  Bytes sum = 1_KiB + 1_KiB;
  sum += 2_KiB;
  EXPECT_EQ(sum, 4_KiB);
  EXPECT_LT(1_KiB, 2_KiB);
  EXPECT_EQ(2_KiB - 1_KiB, 1_KiB);
  EXPECT_EQ(2_KiB * 0.5, 1_KiB);
}

TEST(Units, AWholeQuotientOfBytesIsExact) {
  for (const long long parts : {3, 7, 49, 93, 1000}) {
    const auto k = static_cast<double>(parts);
    EXPECT_EQ(Bytes{parts} / k, Bytes{1}) << parts;
    EXPECT_EQ(Bytes{parts * 1023} / k, Bytes{1023}) << parts;
  }
  EXPECT_EQ(Bytes{99} / 50.0, Bytes{1}) << "fractions are dropped";
}

}  // namespace
}  // namespace regatta
