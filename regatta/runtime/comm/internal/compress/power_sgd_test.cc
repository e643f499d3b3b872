#include "regatta/runtime/comm/internal/compress/power_sgd.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::comm::compress {
namespace {

std::vector<float> normal(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& x : values)
    x = distribution(random);
  return values;
}

TEST(MakeOrthonormal, GivesColumnsThatAre) {
  const MatrixShape shape = shape_matrix(10000, 6);
  std::vector<float> p = normal(shape.left(), 41);
  make_orthonormal(shape, p);
  for (std::size_t a = 0; a < shape.rank; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double dot = 0;
      for (std::size_t i = 0; i < shape.rows; ++i)
        dot +=
            static_cast<double>(p[a * shape.rows + i]) * static_cast<double>(p[b * shape.rows + i]);
      EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-5);
    }
}

TEST(MakeOrthonormal, DropsAColumnThatDependsOnOthers) {
  const MatrixShape shape{.count = 9, .rows = 3, .columns = 3, .rank = 3};
  std::vector<float> p{1, 2, 3, 2, 4, 6, 0, 0, 0};
  make_orthonormal(shape, p);
  for (std::size_t i = 3; i < 9; ++i)
    EXPECT_EQ(p[i], 0) << i;
}

// One round of the iteration: what is left of m.
double iterate(const MatrixShape& shape, const std::vector<float>& m, std::vector<float>& q) {
  std::vector<float> p(shape.left());
  multiply(shape, m, q, p);
  make_orthonormal(shape, p);
  multiply_transposed(shape, m, p, q);
  std::vector<float> out(m.size());
  const double squares = expand(shape, p, q, out, 1);
  std::vector<float> rest = m;
  const double left = subtract(shape, p, q, rest);
  double sum = 0;
  for (std::size_t i = 0; i < m.size(); ++i) {
    EXPECT_NEAR(rest[i], m[i] - out[i], 1e-4);
    sum += static_cast<double>(out[i]) * static_cast<double>(out[i]);
  }
  EXPECT_NEAR(squares, sum, 1e-4 * sum);
  return left;
}

TEST(PowerSgd, FindsAMatrixOfItsRank) {
  const MatrixShape shape = shape_matrix(5041, 2);
  const std::vector<float> a = normal(shape.left(), 42);
  const std::vector<float> b = normal(shape.right(), 43);
  std::vector<float> m(shape.count);
  const double squares = expand(shape, a, b, m, 1);
  std::vector<float> q = first_factor(shape);
  iterate(shape, m, q);
  EXPECT_LT(iterate(shape, m, q), 1e-3 * squares);
}

TEST(PowerSgd, LeavesLessInEveryRoundOfTheIteration) {
  const MatrixShape shape = shape_matrix(39990, 4);
  const std::vector<float> m = normal(shape.count, 44);
  std::vector<float> q = first_factor(shape);
  const double first = iterate(shape, m, q);
  const double second = iterate(shape, m, q);
  const double third = iterate(shape, m, q);
  EXPECT_LT(second, first);
  EXPECT_LT(third, second);
}

TEST(PowerSgd, GivesTheSameInBlocksOfRows) {
  const MatrixShape shape = shape_matrix(39990, 4);
  const std::vector<float> m = normal(shape.count, 47);
  const std::vector<float> q = first_factor(shape);
  std::vector<float> p(shape.left());
  std::vector<float> back(shape.right());
  multiply(shape, m, q, p);
  multiply_transposed(shape, m, p, back);
  std::vector<float> p_of_blocks(shape.left());
  std::vector<float> back_of_blocks(shape.right(), 7);
  const std::vector<MatrixShape> blocks = cut_rows(shape, 3000);
  EXPECT_GT(blocks.size(), 10U);
  for (const MatrixShape& block : blocks)
    multiply(block, m, q, p_of_blocks);
  for (const MatrixShape& block : blocks)
    multiply_transposed(block, m, p, back_of_blocks);
  EXPECT_EQ(p_of_blocks, p);
  EXPECT_EQ(back_of_blocks, back);
}

TEST(PowerSgd, ScalesWhatItExpands) {
  const MatrixShape shape = shape_matrix(100, 3);
  const std::vector<float> p = normal(shape.left(), 45);
  const std::vector<float> q = normal(shape.right(), 46);
  std::vector<float> whole(shape.count);
  std::vector<float> half(shape.count);
  EXPECT_EQ(expand(shape, p, q, whole, 1), expand(shape, p, q, half, 0.5F));
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(half[i], whole[i] / 2);
}

TEST(ShapeMatrix, HoldsEveryElementNearASquare) {
  for (const std::size_t count : {1U, 2U, 3U, 10U, 101U, 1U << 20}) {
    const MatrixShape shape = shape_matrix(count, 4);
    EXPECT_GE(shape.rows * shape.columns, count);
    EXPECT_LT((shape.rows - 1) * shape.columns, count);
    EXPECT_LE(shape.rows, shape.columns);
    EXPECT_LE(shape.rank, shape.rows);
  }
  EXPECT_EQ(shape_matrix(0, 4).rows, 0U);
}

}  // namespace
}  // namespace regatta::comm::compress
