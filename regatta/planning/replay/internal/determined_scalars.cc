#include "regatta/planning/replay/internal/determined_scalars.h"

#include <algorithm>
#include <utility>

namespace regatta::replay {
namespace {

using Matrix = std::vector<std::vector<double>>;

// The matrix is symmetric and positive definite, so that no pivot of Gauss and Jordan is 0.
Matrix inverse(Matrix matrix) {
  const std::size_t size = matrix.size();
  Matrix result(size, std::vector<double>(size, 0));
  for (std::size_t i = 0; i < size; ++i)
    result[i][i] = 1;
  for (std::size_t pivot = 0; pivot < size; ++pivot) {
    const double scale = 1 / matrix[pivot][pivot];
    for (std::size_t k = 0; k < size; ++k) {
      matrix[pivot][k] *= scale;
      result[pivot][k] *= scale;
    }
    for (std::size_t row = 0; row < size; ++row) {
      if (row == pivot) continue;
      const double factor = matrix[row][pivot];
      for (std::size_t k = 0; k < size; ++k) {
        matrix[row][k] -= factor * matrix[pivot][k];
        result[row][k] -= factor * result[pivot][k];
      }
    }
  }
  return result;
}

// The largest variance left of `taken`, each 1 before the measurements.
double largest_variance(const Matrix& sensitivity, const std::vector<std::size_t>& taken,
                        double noise) {
  Matrix information(taken.size(), std::vector<double>(taken.size(), 0));
  for (std::size_t a = 0; a < taken.size(); ++a) {
    information[a][a] = 1;
    for (std::size_t b = 0; b < taken.size(); ++b)
      for (const std::vector<double>& row : sensitivity)
        information[a][b] += row[taken[a]] * row[taken[b]] / (noise * noise);
  }
  const Matrix variance = inverse(std::move(information));
  double largest = 0;
  for (std::size_t i = 0; i < taken.size(); ++i)
    largest = std::max(largest, variance[i][i]);
  return largest;
}

}  // namespace

std::vector<std::size_t> determined(const Matrix& sensitivity, std::size_t unknowns, double noise) {
  constexpr double kMostVariance = 0.5;
  std::vector<std::size_t> taken;
  while (taken.size() < unknowns) {
    double least = kMostVariance;
    std::vector<std::size_t> best;
    for (std::size_t k = 0; k < unknowns; ++k) {
      if (std::find(taken.begin(), taken.end(), k) != taken.end()) continue;
      std::vector<std::size_t> more = taken;
      more.push_back(k);
      const double variance = largest_variance(sensitivity, more, noise);
      if (variance >= least) continue;
      least = variance;
      best = std::move(more);
    }
    if (best.empty()) break;
    taken = std::move(best);
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

}  // namespace regatta::replay
