// train/internal/dataset.h: the training text: the bytes of a file or of all files of a folder are
// the tokens; samples are windows of it in an order that depends on the seed alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::train {

struct Dataset {
  std::string path;
  std::vector<std::uint8_t> bytes;
  int seq = 0;

  // Samples of one epoch: windows of seq tokens and the one after, next to each other.
  long long windows() const;
};

// Reads `path`; a folder recursively, files in the sorted order of their paths, links to files
// followed, links to folders not. kInvalidInput names the path: missing or unreadable, fewer than
// seq + 1 bytes, a byte that is no token of the vocabulary.
Result<Dataset> load_dataset(const std::string& path, int seq, int vocab);

// The window of sample `index` (from 0, over the whole run): every epoch visits each window once,
// in an order of its own.
long long window_of(std::uint64_t seed, long long index, long long windows);

// The seq + 1 bytes of sample `index`.
const std::uint8_t* sample(const Dataset& dataset, std::uint64_t seed, long long index);

}  // namespace regatta::train
