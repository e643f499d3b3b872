// comm/internal/compress/power_sgd.h: a vector, seen as a matrix M of rows x columns near a square,
// as the product of two thin matrices: one step of subspace iteration, which begins with the result
// of the last one.
//   P = M Q, summed over the ranks, made orthonormal;  Q = M^T P, summed;  M ~ P Q^T
// Thin matrices are stored column by column: P has rank x rows elements, Q rank x columns. Pure; a
// pass over M each, whole or in blocks of rows. Source: Vogels, Karimireddy and Jaggi, NeurIPS
// 2019, algorithm 1.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "regatta/runtime/comm/internal/compress/codec.h"

namespace regatta::comm::compress {

struct MatrixShape {
  std::size_t count = 0;  // elements of the vector; the last row may be short
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t rank = 1;
  // The rows [from, to) of a pass: all of them, or a block.
  std::size_t from = 0;
  std::size_t to = 0;

  std::size_t left() const { return rows * rank; }  // elements of P
  std::size_t right() const { return columns * rank; }
};
// rank is at most that of the matrix. count 0: no rows.
MatrixShape shape_matrix(std::size_t count, int rank);

// Blocks of about `elements` elements, at least a row, in order.
std::vector<MatrixShape> cut_rows(const MatrixShape& shape, std::size_t elements);

// The factor that the first call begins with: the same on every rank.
std::vector<float> first_factor(const MatrixShape& shape);

// P = M Q; of a block, its rows of P.
void multiply(const MatrixShape& shape, std::span<const float> m, std::span<const float> q,
              std::span<float> p);
// The columns of P become orthonormal (modified Gram-Schmidt in f64, in one order on every
// processor); a column that depends on those before it becomes zero.
void make_orthonormal(const MatrixShape& shape, std::span<float> p);
// Q = M^T P; the first block sets Q, those that follow in their order add to it.
void multiply_transposed(const MatrixShape& shape, std::span<const float> m,
                         std::span<const float> p, std::span<float> q);
// out = P Q^T times factor; the same bits on every processor. Returns the sum of its squares.
double expand(const MatrixShape& shape, std::span<const float> p, std::span<const float> q,
              std::span<float> out, float factor);
// m -= P Q^T; returns the sum of the squares of m.
double subtract(const MatrixShape& shape, std::span<const float> p, std::span<const float> q,
                std::span<float> m);

}  // namespace regatta::comm::compress
