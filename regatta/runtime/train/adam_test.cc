#include "regatta/runtime/train/adam.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

namespace regatta::train {
namespace {

Parameters two_parameters(workload::Precision precision) {
  const std::vector<ParameterSpec> specs{{.name = "matrix",
                                          .rows = 40,
                                          .columns = 50,
                                          .cut = TensorParallelCut::kRows,
                                          .init = Init::kOne},
                                         {.name = "vector", .rows = 3, .init = Init::kOne}};
  return make_parameters(specs, {.precision = precision});
}

TEST(Adam, FollowsTheFormulaOfThePaper) {
  const c10::InferenceMode inference;
  Parameters parameters = two_parameters(workload::Precision::kFp32);
  const workload::Optimizer optimizer{.lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
  double weight = 1;
  double m = 0;
  double v = 0;
  for (int update = 1; update <= 5; ++update) {
    const double g = 0.5 * update;
    parameters.gradient.fill_(2 * g);
    adam_update(parameters, optimizer, update, 0.5);
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    weight -= 0.1 * (m / (1 - std::pow(0.9, update))) /
              (std::sqrt(v / (1 - std::pow(0.99, update))) + 1e-3);
  }
  const float* weights = parameters.master.data_ptr<float>();
  for (const int i : {0, 1, 1999, 2000, 2002})
    EXPECT_NEAR(weights[i], weight, 1e-5);
  EXPECT_EQ(parameters.gradient.data_ptr<float>()[7], 0);
}

TEST(Adam, DecaysMatricesAlone) {
  const c10::InferenceMode inference;
  Parameters parameters = two_parameters(workload::Precision::kFp32);
  adam_update(parameters, {.lr = 0.1, .weight_decay = 0.5}, 1, 1);
  EXPECT_NEAR(parameters.master.data_ptr<float>()[0], 0.95, 1e-6);
  EXPECT_EQ(parameters.master.data_ptr<float>()[2000], 1);
}

TEST(Adam, KeepsSmallUpdatesInTheMasterWeightsOfBf16) {
  const c10::InferenceMode inference;
  Parameters parameters = two_parameters(workload::Precision::kBf16);
  for (int update = 1; update <= 100; ++update) {
    parameters.gradient.fill_(1);
    adam_update(parameters, {.lr = 1e-4}, update, 1);
  }
  EXPECT_NEAR(parameters.master.data_ptr<float>()[0], 0.99, 1e-4);
  EXPECT_NEAR(parameters["vector"].value.to(at::kFloat).data_ptr<float>()[0], 0.99, 4e-3);
}

TEST(GradientNorm, CountsWholeParametersOnceInATensorParallelGroup) {
  const c10::InferenceMode inference;
  Parameters parameters = two_parameters(workload::Precision::kFp32);
  parameters.gradient.fill_(2);
  EXPECT_DOUBLE_EQ(gradient_square_sum(parameters, 0), 4.0 * 2003);
  EXPECT_DOUBLE_EQ(gradient_square_sum(parameters, 1), 4.0 * 2000);
  parameters.list[0].spec.second_copy = true;
  EXPECT_DOUBLE_EQ(gradient_square_sum(parameters, 0), 4.0 * 3);
}

TEST(ClipScale, ShrinksOnlyWhatIsTooLong) {
  EXPECT_EQ(clip_scale(1, 4), 0.25);
  EXPECT_EQ(clip_scale(1, 0.5), 1);
  EXPECT_EQ(clip_scale(0, 100), 1);
}

}  // namespace
}  // namespace regatta::train
