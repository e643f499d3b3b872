// cost/internal/gpu_matmul.h: how long a GPU takes for a matrix product, from its shape alone.
// A product is cut into tiles, one processor works on a tile at a time, and the processors take
// them in waves: the last wave is rarely full (NVIDIA, "Matrix multiplication background",
// DU-09799, sections 3 and 4: tile and wave quantization).
#pragma once

#include "regatta/base/core/units.h"

namespace regatta::cost {

// `batch` products C[m,n] = A[m,k] B[k,n].
struct Product {
  double batch = 1;
  double m = 0;
  double n = 0;
  double k = 0;
};

// A GPU as products see it, with what a software stack makes of it.
struct MatrixEngine {
  int processors = 0;       // streaming multiprocessors
  FlopsPerSecond peak;      // of the precision, dense, all processors together
  double efficiency = 1;    // share of the peak that full waves of deep products reach
  double tile_depth = 0;    // elements of k that beginning and ending a tile are worth
  double misalignment = 0;  // time added for each halving of the alignment below 128 bytes
  double unaligned = 4;     // time of a product whose rows tensor cores cannot read, over theirs
  BytesPerSecond memory;    // that passes over memory reach
  double bytes_per_element = 2;
};

// The least over tile shapes and, where the tiles do not fill the processors, over cuts of k; not
// less than reading the operands and writing the result once. Requires sizes of at least 1.
Seconds matmul_time(const MatrixEngine& engine, const Product& product);

// Bytes, up to 128, that rows of `elements` are aligned to.
double row_alignment(double elements, double bytes_per_element);

}  // namespace regatta::cost
