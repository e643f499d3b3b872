#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/cost/software_stack.h"

namespace regatta::cost {
namespace {

using testing::HasSubstr;

StackCalibration sample() {
  SoftwareStack stack = *find_software_stack("nemo");
  stack.calibration.matrix_efficiency = 2.0 / 3.0;
  stack.calibration.launch = Seconds{1.0 / 3.0 * 1e-5};
  stack.traits.tp_overlap = 0.7;
  stack.own_dense = {.count = 6, .range = {.low = 0.95, .high = 1.0 / 0.93}};
  StackCalibration calibration = calibration_of(stack);
  calibration.device = "h100-sxm";
  calibration.source = "6 runs of runs.csv";
  calibration.fitted = {StackScalar::kMatrixEfficiency, StackScalar::kLaunch};
  calibration.error_before = 0.21;
  calibration.error_after = 0.02;
  calibration.error_left_out = 0.03;
  return calibration;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(StackScalars, EachIsReadFromTheFieldThatItIsWrittenTo) {
  SoftwareStack stack = *find_software_stack("nemo");
  double value = 0.001;
  for (const StackScalar scalar : all_stack_scalars())
    set_scalar(stack, scalar, value += 0.001);
  value = 0.001;
  for (const StackScalar scalar : all_stack_scalars())
    EXPECT_DOUBLE_EQ(scalar_of(stack, scalar), value += 0.001) << to_string(scalar);
  EXPECT_DOUBLE_EQ(stack.calibration.matrix_efficiency, 0.002);
  EXPECT_DOUBLE_EQ(stack.traits.ep_overlap, 0.014);
}

TEST(StackCalibrationJson, GivesBackWhatWasWritten) {
  const std::string text = stack_calibration_to_json(sample());
  const auto back = parse_stack_calibration(text, "c.calibrated.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(stack_calibration_to_json(*back), text);
  EXPECT_EQ(back->values, sample().values);
  EXPECT_EQ(back->fitted, sample().fitted);
  EXPECT_EQ(back->dense, sample().dense);
  EXPECT_EQ(back->experts.count, 0);
  const SoftwareStack stack = calibrated(*find_software_stack("nemo"), *back);
  EXPECT_EQ(stack.calibration.launch.value, 1.0 / 3.0 * 1e-5);
  EXPECT_EQ(stack.own_dense.count, 6);
}

TEST(StackCalibrationJson, DecidesTheRangeOfTheModelsThatItsRunsHad) {
  const SoftwareStack stack = calibrated(*find_software_stack("nemo"), sample());
  workload::ModelShape model;
  EXPECT_EQ(prediction_error_range(stack, model), sample().dense.range);
  model.experts.count = 8;
  EXPECT_EQ(prediction_error_range(stack, model),
            prediction_error_range(*find_software_stack("nemo"), model));
}

TEST(StackCalibrationJson, NamesTheFileTheKeyAndTheRemedy) {
  const std::string text = stack_calibration_to_json(sample());
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"{", "c.json: not JSON in line 1: "},
      {replaced(text, "\"version\": 1", "\"version\": 2"), "c.json: version: 2 is not 1; run `"},
      {replaced(text, "\"nemo\"", "\"nemu\""), "c.json: stack: there is no software stack 'nemu'"},
      {replaced(text, "\"tp_overlap\": 0.7", "\"tp_overlap\": 1.7"),
       "c.json: scalars.tp_overlap: expected a number from 0 to 1, found 1.7"},
      {replaced(text, "\"launch_s\":", "\"launch\":"), "c.json: scalars.launch_s: missing"},
      {replaced(text, "    \"launch_s\"\n", "    \"speed\"\n"),
       "c.json: fitted[1]: expected one of"},
      {replaced(text, "\"runs\": 6", "\"runs\": 0"), "c.json: dense.runs: "},
      {replaced(text, "\"dense\"", "\"other\""),
       "c.json: neither \"dense\" nor \"experts\" has runs; run `regatta plan calibrate` again"},
  };
  for (const auto& one : cases) {
    const auto result = parse_stack_calibration(one.text, "c.json");
    ASSERT_FALSE(result.has_value()) << one.text;
    EXPECT_EQ(result.error().code, Code::kInvalidInput);
    EXPECT_THAT(result.error().message, HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace regatta::cost
