#include "regatta/base/core/result.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace regatta {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0)
    return Error{Code::kInvalidInput, std::to_string(number) + " is odd; give an even number"};
  return number / 2;
}

Result<int> quarter(int number) {
  REGATTA_TRY(once, half(number));
  REGATTA_TRY(twice, half(once));
  return twice;
}

Status check_even(int number) {
  REGATTA_TRY_DO(half(number));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half(8), 4);
  EXPECT_FALSE(half(7).has_value());
  EXPECT_EQ(half(7).error().message, "7 is odd; give an even number");
  EXPECT_EQ(half(7).value_or(-1), -1);
}

TEST(Result, TryPassesTheFirstErrorOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "3 is odd; give an even number");
  EXPECT_TRUE(check_even(2).has_value());
  EXPECT_EQ(check_even(3).error().code, Code::kInvalidInput);
}

TEST(Result, AndThenChainsFunctionsThatFail) {
  EXPECT_EQ(*half(8).and_then(half), 2);
  EXPECT_EQ(half(6).and_then(half).error().message, "3 is odd; give an even number");
}

TEST(Result, CarriesValuesThatOnlyMove) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 5);
}

TEST(Error, MapsWrongInputToStatusTwo) {
  EXPECT_EQ(exit_status({Code::kInvalidInput, ""}), 2);
  EXPECT_EQ(exit_status({Code::kUnsupported, ""}), 2);
  EXPECT_EQ(exit_status({Code::kTimeout, ""}), 1);
  EXPECT_EQ(exit_status({Code::kUnavailable, ""}), 1);
}

}  // namespace
}  // namespace regatta
