#include "regatta/model/cost/compute.h"

#include <random>

#include <gtest/gtest.h>

#include "regatta/model/cost/test_model.h"

namespace regatta::cost {
namespace {

using namespace regatta::literals;

DeviceRates flat(double rate) {
  DeviceRates rates;
  rates.matmul = {{256, 256, 256, workload::Precision::kFp32, {rate}}};
  rates.copy_bandwidth = {1e9};
  rates.pointwise_bandwidth = {1e9};
  rates.operator_overhead = {1e-6};
  return rates;
}

double flops(const Operators& operators) {
  double total = 0;
  for (const Operator& one : operators)
    total += 2.0 * one.batch * one.m * one.n * one.k;
  return total;
}
double flops(const BlockForward& block) {
  return flops(block.attention) + flops(block.mlp);
}
double flops(const BlockBackward& block) {
  return flops(block.mlp) + flops(block.mlp_overlapped) + flops(block.attention) +
         flops(block.attention_overlapped) + flops(block.last);
}
double flops(const HeadBackward& head) {
  return flops(head.input) + flops(head.overlapped) + flops(head.last);
}

// Narayanan et al., SC'21: per block 24 B s h^2 (1 + s / 6h) forward, twice that backward, and
// 2 B s h V for the logits.
TEST(Operators, DoTheWorkOfThePaper) {
  for (const int micro_batch : {1, 2, 8}) {
    const RankShape shape{small_model(), workload::Precision::kFp32, 1, micro_batch};
    const double b = micro_batch;
    const double s = 256;
    const double h = 256;
    const double block = 24 * b * s * h * h * (1 + s / (6 * h));
    EXPECT_DOUBLE_EQ(flops(block_forward(shape)), block);
    EXPECT_DOUBLE_EQ(flops(block_backward(shape)), 2 * block);
    EXPECT_DOUBLE_EQ(flops(head_forward(shape)), 2 * b * s * h * 256);
    EXPECT_DOUBLE_EQ(flops(head_backward(shape)), 4 * b * s * h * 256);
  }
}

TEST(Operators, SplitEvenlyOverTensorParallelRanks) {
  const RankShape one{small_model(), workload::Precision::kFp32, 1, 2};
  for (const int tp : {2, 4, 8}) {
    RankShape split = one;
    split.tp = tp;
    EXPECT_DOUBLE_EQ(flops(block_forward(split)) * tp, flops(block_forward(one)));
    EXPECT_DOUBLE_EQ(flops(block_backward(split)) * tp, flops(block_backward(one)));
    EXPECT_DOUBLE_EQ(flops(head_forward(split)) * tp, flops(head_forward(one)));
  }
}

TEST(Operators, OfRecomputationLeaveOutTheLastProduct) {
  const RankShape shape{small_model(), workload::Precision::kFp32, 2, 2};
  const double down = 2.0 * 512 * 256 * 512;
  EXPECT_DOUBLE_EQ(flops(block_recompute(shape)) + down, flops(block_forward(shape)));
}

TEST(Operators, AddUpToTheModel) {
  const workload::ModelShape model = small_model();
  const RankShape shape{model, workload::Precision::kFp32, 1, 4};
  double total = flops(head_forward(shape)) + flops(head_backward(shape));
  total += model.layers * (flops(block_forward(shape)) + flops(block_backward(shape)));
  EXPECT_DOUBLE_EQ(total, workload::model_flops(model, 4).value);
}

TEST(MatmulRateOf, IsExactOnAMeasuredShapeAndBetweenTheMeasuredRates) {
  DeviceRates rates = flat(10e9);
  rates.matmul.push_back({1024, 1024, 1024, workload::Precision::kFp32, {40e9}});
  Operator product;
  product.batch = 1;
  product.m = product.n = product.k = 256;
  EXPECT_EQ(matmul_rate(rates, workload::Precision::kFp32, product).value, 10e9);
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same cases every time
  std::uniform_int_distribution<int> side(1, 4096);
  for (int i = 0; i < 1000; ++i) {
    product.m = side(random);
    product.n = side(random);
    product.k = side(random);
    const double rate = matmul_rate(rates, workload::Precision::kFp32, product).value;
    EXPECT_GE(rate, 10e9 * (1 - 1e-12));
    EXPECT_LE(rate, 40e9 * (1 + 1e-12));
  }
}

TEST(OperatorsTime, AddsProductsPassesAndLaunches) {
  const Operators list = {{.name = "p", .batch = 2, .m = 10, .n = 20, .k = 30, .launches = 2},
                          {.name = "q", .bytes = 5e6, .launches = 3}};
  const double operands = 4.0 * 2 * (10 * 30 + 30 * 20 + 10 * 20) / 1e9;
  const double expected = 2 * 2 * 10 * 20 * 30 / 4e9 + operands + 5e6 / 1e9 + 5e-6;
  EXPECT_DOUBLE_EQ(operators_time(flat(4e9), workload::Precision::kFp32, list).value, expected);
}

TEST(OperatorsTime, TakesEachOperatorAtItsOwnRate) {
  DeviceRates rates = flat(4e9);
  rates.pointwise = {{PointwiseOp::kGelu, workload::Precision::kFp32, {0.1e9}},
                     {PointwiseOp::kGelu, workload::Precision::kBf16, {0.2e9}}};
  const Operator gelu{.name = "g", .bytes = 1e6, .launches = 0, .op = PointwiseOp::kGelu};
  Operator exact = gelu;
  exact.fp32 = true;
  const auto time = [&](workload::Precision precision, const Operator& one) {
    return operators_time(rates, precision, {one}).value;
  };
  EXPECT_DOUBLE_EQ(time(workload::Precision::kFp32, gelu), 1e6 / 0.1e9);
  EXPECT_DOUBLE_EQ(time(workload::Precision::kBf16, gelu), 1e6 / 0.2e9);
  EXPECT_DOUBLE_EQ(time(workload::Precision::kBf16, exact), 1e6 / 0.1e9);
}

TEST(OperatorsTime, GrowsWithTheMicroBatchAndFallsWithTensorParallelism) {
  const DeviceRates rates = flat(14e9);
  const auto time = [&](int tp, int micro_batch) {
    const RankShape shape{small_model(), workload::Precision::kFp32, tp, micro_batch};
    return operators_time(rates, workload::Precision::kFp32, block_forward(shape).mlp).value;
  };
  EXPECT_LT(time(1, 1), time(1, 2));
  EXPECT_LT(time(2, 1), time(1, 1));
  EXPECT_GT(2 * time(2, 1), time(1, 1));  // norms and residuals are not split
}

}  // namespace
}  // namespace regatta::cost
