#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/cost/rates.h"

namespace regatta::cost {
namespace {

using testing::HasSubstr;

Rates sample() {
  Rates rates;
  rates.source = "measured 2026-11-21 on 8 devices";
  DeviceRates device;
  device.matmul = {{256, 768, 256, workload::Precision::kFp32, {13.7e9}},
                   {512, 256, 1024, workload::Precision::kBf16, {1.0 / 3.0 * 1e9}}};
  device.copy_bandwidth = {1.1e9};
  device.pointwise_bandwidth = {0.9e9};
  device.operator_overhead = {21e-6};
  device.pointwise = {{PointwiseOp::kGelu, workload::Precision::kFp32, {1.8e9}},
                      {PointwiseOp::kAdam, workload::Precision::kFp32, {4.9e9}}};
  device.described = {14.4e9};
  rates.devices["cpu"] = device;
  rates.paths = {{PathClass::kSameServer, {40e-6}, {6e8}, {1e9}},
                 {PathClass::kSameGroup, {190e-6}, {11.1e6}, {12.5e6}}};
  rates.shared_cores = true;
  return rates;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(RatesJson, GivesBackWhatWasWritten) {
  const std::string text = rates_to_json(sample());
  const auto back = parse_rates(text, "x.json");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(rates_to_json(*back), text);
  EXPECT_EQ(back->devices.at("cpu").matmul[1].rate.value, 1.0 / 3.0 * 1e9);
  EXPECT_EQ(back->paths[1].path, PathClass::kSameGroup);
  EXPECT_TRUE(back->shared_cores);
  const DeviceRates& device = back->devices.at("cpu");
  EXPECT_EQ(device.described.value, 14.4e9);
  ASSERT_EQ(device.pointwise.size(), 2U);
  EXPECT_EQ(pointwise_bandwidth(device, PointwiseOp::kGelu, workload::Precision::kFp32).value,
            1.8e9);
}

TEST(RatesJson, ReadsFilesThatDoNotSayWhatTheyMeasured) {
  const std::string text = rates_to_json(sample());
  const auto back = parse_rates(replaced(text, "\"described_flops\"", "\"other\""), "x.json");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->devices.at("cpu").described.value, 0);
  const auto again = parse_rates(rates_to_json(*back), "y.json");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->devices.at("cpu").described.value, 0);
}

TEST(RatesJson, CarriesUnitsInItsKeys) {
  const std::string text = rates_to_json(sample());
  for (const char* key : {"bandwidth_Bps", "latency_s", "rate_flops", "operator_overhead_s"})
    EXPECT_THAT(text, HasSubstr(key));
}

TEST(RatesJson, NamesTheFileTheKeyAndTheRemedy) {
  const std::string text = rates_to_json(sample());
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"{", "x.json: not JSON in line 1: "},
      {"[]", "x.json: expected an object, found a list; run `regatta measure` again"},
      {replaced(text, "\"version\": 1", "\"version\": 7"), "x.json: version: 7 is not 1"},
      {replaced(text, "same_group", "same_rack"),
       "x.json: paths[1].path: expected one of same_server, same_leaf, same_group, super_spine, "
       "found the string \"same_rack\""},
      {replaced(text, "0.00019", "-1"),
       "x.json: paths[1].latency_s: expected a number above 0, found -1"},
      {replaced(text, "\"operator_overhead_s\"", "\"overhead\""),
       "x.json: devices.cpu.operator_overhead_s: missing"},
      {replaced(text, "bf16", "fp8"),
       "precision: expected one of fp32, bf16, found the string \"fp8\""},
  };
  for (const auto& one : cases) {
    const auto result = parse_rates(one.text, "x.json");
    ASSERT_FALSE(result.has_value()) << one.text;
    EXPECT_EQ(result.error().code, Code::kInvalidInput);
    EXPECT_THAT(result.error().message, HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace regatta::cost
