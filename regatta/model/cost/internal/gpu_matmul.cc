#include "regatta/model/cost/internal/gpu_matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regatta::cost {
namespace {

// The shapes that vendors' libraries have kernels for.
struct Tile {
  double m;
  double n;
};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64},
                           {64, 256},  {128, 64},  {64, 128},  {64, 64}};
constexpr Tile kLargest = kTiles[0];

// A tile reads m + n elements for each m n products, and the processor's own memory feeds them at a
// rate that makes the products wait: with this many products for an element a tile runs at half
// speed. The efficiency of an engine is that of the largest tile.
constexpr double kProductsPerElement = 20;

double tile_rate(const Tile& tile) {
  return 1 / (1 + kProductsPerElement * (1 / tile.m + 1 / tile.n));
}

constexpr double kAligned = 128;  // bytes: a line of the L2 cache
// Tensor cores read 16 bytes at a time; rows that are not aligned to that are read slowly.
constexpr double kVector = 16;

double misalignment_factor(const MatrixEngine& engine, const Product& product) {
  const double bytes = std::min({row_alignment(product.m, engine.bytes_per_element),
                                 row_alignment(product.n, engine.bytes_per_element),
                                 row_alignment(product.k, engine.bytes_per_element)});
  const double factor = 1 + engine.misalignment * std::log2(kAligned / bytes);
  return bytes < kVector ? factor * engine.unaligned : factor;
}

constexpr double kCutsMax = 8;
constexpr double kCutDepthMin = 512;  // elements of k that a cut keeps

}  // namespace

double row_alignment(double elements, double bytes_per_element) {
  double bytes = bytes_per_element;
  const auto whole = static_cast<long long>(elements);
  for (long long part = 2; bytes < kAligned && whole % part == 0; part *= 2)
    bytes *= 2;
  return bytes;
}

Seconds matmul_time(const MatrixEngine& engine, const Product& product) {
  const double results = product.batch * product.m * product.n;
  const double processor =
      engine.peak.value * engine.efficiency / engine.processors / tile_rate(kLargest);
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles =
        product.batch * std::ceil(product.m / tile.m) * std::ceil(product.n / tile.n);
    for (double cuts = 1; cuts <= kCutsMax; cuts *= 2) {
      if (cuts > 1 && (tiles >= engine.processors || product.k / cuts < kCutDepthMin)) break;
      const double waves = std::ceil(tiles * cuts / engine.processors);
      const double depth = product.k / cuts + engine.tile_depth;
      double time = waves * 2 * tile.m * tile.n * depth / (processor * tile_rate(tile));
      // Partial results in fp32 are written, read and added.
      if (cuts > 1) time += 4 * results * (cuts + 1) / engine.memory.value;
      least = std::min(least, time);
    }
  }
  const double elements = product.batch * (product.m * product.k + product.k * product.n) + results;
  const double passes = elements * engine.bytes_per_element / engine.memory.value;
  return Seconds{std::max(least * misalignment_factor(engine, product), passes)};
}

}  // namespace regatta::cost
