#include "regatta/planning/replay/internal/fit_coordinate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace regatta::replay {
namespace {

using cost::StackScalar;

// A wait of 0 and one of 100 us are told apart by no step.
constexpr double kWaitAdded = 1e-4;

// By StackScalar. Limits: a product the peak; a copy on an A100 0.92 of its memory's bandwidth
// (BabelStream); NCCL 230 of 300 GB/s between 8 A100 (nccl-tests, all_reduce of 1 GiB: 0.77); RDMA
// 0.97 of the line; a small NCCL call some 20 us, in a training step several times that. A fit that
// leaves these ranges explains one thing by another.
// Widths: about how much a scalar differs between the clusters of one stack. The clock of devices,
// hosts and links differ, kernels are the same.
constexpr std::array<FitCoordinate, cost::kStackScalarCount> kCoordinates = {{
    {StackScalar::kMatrixEfficiency, 0.6, 0.95, 0.1},
    {StackScalar::kTileDepth, 50, 500, 0.3},
    {StackScalar::kMemoryEfficiency, 0.6, 0.92, 0.15},
    {StackScalar::kLaunch, 1e-7, 1e-4, 0.7},
    {StackScalar::kLinkEfficiency, 0.5, 0.8, 0.1},
    {StackScalar::kNetworkEfficiency, 0.4, 0.97, 0.15},
    {StackScalar::kCollectiveLatency, 2e-5, 2e-4, 0.7},
    {StackScalar::kMisalignment, 0.01, 0.15, 0.3},
    {StackScalar::kExpertsSync, kWaitAdded, 1e-2 + kWaitAdded, 0.7, kWaitAdded},
    {StackScalar::kTpOverlap, 0.05, 1, 0.5, 0, true},
    {StackScalar::kPpOverlap, 0.05, 1, 0.5, 0, true},
    {StackScalar::kDpOverlap, 0.05, 1, 0.5, 0, true},
    {StackScalar::kEpOverlap, 0.05, 1, 0.5, 0, true},
}};

}  // namespace

FitCoordinate coordinate_of(StackScalar scalar) {
  return kCoordinates[static_cast<std::size_t>(scalar)];
}

double coordinate_value(const FitCoordinate& coordinate, const cost::SoftwareStack& stack) {
  const double scalar = cost::scalar_of(stack, coordinate.scalar);
  const double inner = coordinate.is_rest ? 1 - scalar : scalar + coordinate.added;
  return std::log(std::clamp(inner, coordinate.least, coordinate.most));
}

void apply(const FitCoordinate& coordinate, double value, cost::SoftwareStack& stack) {
  const double inner = std::clamp(std::exp(value), coordinate.least, coordinate.most);
  cost::set_scalar(stack, coordinate.scalar,
                   coordinate.is_rest ? 1 - inner : inner - coordinate.added);
}

double excess(const FitCoordinate& coordinate, double value) {
  return std::max({value - std::log(coordinate.most), std::log(coordinate.least) - value, 0.0});
}

}  // namespace regatta::replay
