// store/internal/reserve_file.h: space of a disk that is kept for the day on which it is full.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::store {

// Bytes that a user's process may still write to the file system of `folder`.
Result<Bytes> free_space(const std::string& folder);

class ReserveFile {
 public:
  // `size` 0: there is never one, and none is missed.
  ReserveFile(const std::string& folder, Bytes size) : folder_(folder), size_(size) {}

  // Whether the file is there with all its blocks.
  bool is_there() const;
  // Makes it when it is missing and three times its size is free; no error when space lacks.
  void make_when_possible() const;
  // Removes it; whether there was one.
  bool release() const;

 private:
  std::string path() const { return folder_ + "/reserve"; }

  std::string folder_;
  Bytes size_;
};

}  // namespace regatta::store
