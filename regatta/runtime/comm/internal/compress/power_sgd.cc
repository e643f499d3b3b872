#include "regatta/runtime/comm/internal/compress/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace regatta::comm::compress {
namespace {

// A column that keeps less than this of its length was a sum of those before it.
constexpr double kDependent = 1e-6;

std::size_t row_length(const MatrixShape& shape, std::size_t row) {
  return std::min(shape.columns, shape.count - row * shape.columns);
}

double dot(const float* a, const float* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// One row of P Q^T.
void expand_row(const MatrixShape& shape, const float* p, const float* q, std::size_t length,
                float* row) {
  std::fill_n(row, length, 0.0F);
  for (std::size_t c = 0; c < shape.rank; ++c) {
    const float weight = p[c * shape.rows];
    const float* column = q + c * shape.columns;
#pragma omp simd
    for (std::size_t j = 0; j < length; ++j)
      row[j] += weight * column[j];
  }
}

float squares_of(const float* row, std::size_t length) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < length; ++j)
    sum += row[j] * row[j];
  return sum;
}

}  // namespace

MatrixShape shape_matrix(std::size_t count, int rank) {
  MatrixShape shape{.count = count};
  if (count == 0) return shape;
  shape.columns = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  shape.rows = (count + shape.columns - 1) / shape.columns;
  shape.rank = std::min({static_cast<std::size_t>(rank), shape.rows, shape.columns});
  shape.to = shape.rows;
  return shape;
}

std::vector<MatrixShape> cut_rows(const MatrixShape& shape, std::size_t elements) {
  std::vector<MatrixShape> blocks;
  const std::size_t rows =
      std::max<std::size_t>(elements / std::max<std::size_t>(shape.columns, 1), 1);
  for (std::size_t from = 0; from < shape.rows; from += rows) {
    blocks.push_back(shape);
    blocks.back().from = from;
    blocks.back().to = std::min(from + rows, shape.rows);
  }
  return blocks;
}

std::vector<float> first_factor(const MatrixShape& shape) {
  std::vector<float> factor(shape.right());
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (float& x : factor) {
    // The sum of four numbers from -0.5 to 0.5 is close enough to a normal distribution.
    x = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      x += static_cast<float>(state >> 40) * 0x1p-24F - 0.5F;
    }
  }
  return factor;
}

void multiply(const MatrixShape& shape, std::span<const float> m, std::span<const float> q,
              std::span<float> p) {
  for (std::size_t i = shape.from; i < shape.to; ++i) {
    const float* row = m.data() + i * shape.columns;
    const std::size_t length = row_length(shape, i);
    for (std::size_t c = 0; c < shape.rank; ++c) {
      const float* column = q.data() + c * shape.columns;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t j = 0; j < length; ++j)
        sum += row[j] * column[j];
      p[c * shape.rows + i] = sum;
    }
  }
}

void make_orthonormal(const MatrixShape& shape, std::span<float> p) {
  for (std::size_t c = 0; c < shape.rank; ++c) {
    float* column = p.data() + c * shape.rows;
    const double before = std::sqrt(dot(column, column, shape.rows));
    for (std::size_t earlier = 0; earlier < c; ++earlier) {
      const float* other = p.data() + earlier * shape.rows;
      const double share = dot(column, other, shape.rows);
      for (std::size_t i = 0; i < shape.rows; ++i)
        column[i] = static_cast<float>(static_cast<double>(column[i]) -
                                       share * static_cast<double>(other[i]));
    }
    const double length = std::sqrt(dot(column, column, shape.rows));
    const double scale = length > kDependent * before ? 1 / length : 0;
    for (std::size_t i = 0; i < shape.rows; ++i)
      column[i] = static_cast<float>(static_cast<double>(column[i]) * scale);
  }
}

void multiply_transposed(const MatrixShape& shape, std::span<const float> m,
                         std::span<const float> p, std::span<float> q) {
  if (shape.from == 0) std::fill(q.begin(), q.end(), 0.0F);
  for (std::size_t i = shape.from; i < shape.to; ++i) {
    const float* row = m.data() + i * shape.columns;
    const std::size_t length = row_length(shape, i);
    for (std::size_t c = 0; c < shape.rank; ++c) {
      const float weight = p[c * shape.rows + i];
      float* column = q.data() + c * shape.columns;
#pragma omp simd
      for (std::size_t j = 0; j < length; ++j)
        column[j] += weight * row[j];
    }
  }
}

double expand(const MatrixShape& shape, std::span<const float> p, std::span<const float> q,
              std::span<float> out, float factor) {
  double squares = 0;
  for (std::size_t i = shape.from; i < shape.to; ++i) {
    float* row = out.data() + i * shape.columns;
    const std::size_t length = row_length(shape, i);
    expand_row(shape, p.data() + i, q.data(), length, row);
    squares += static_cast<double>(squares_of(row, length));
    if (factor == 1) continue;
#pragma omp simd
    for (std::size_t j = 0; j < length; ++j)
      row[j] *= factor;
  }
  return squares;
}

double subtract(const MatrixShape& shape, std::span<const float> p, std::span<const float> q,
                std::span<float> m) {
  std::vector<float> part(shape.columns);
  double squares = 0;
  for (std::size_t i = shape.from; i < shape.to; ++i) {
    float* row = m.data() + i * shape.columns;
    const std::size_t length = row_length(shape, i);
    expand_row(shape, p.data() + i, q.data(), length, part.data());
#pragma omp simd
    for (std::size_t j = 0; j < length; ++j)
      row[j] -= part[j];
    squares += static_cast<double>(squares_of(row, length));
  }
  return squares;
}

}  // namespace regatta::comm::compress
