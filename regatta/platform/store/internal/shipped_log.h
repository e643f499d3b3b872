// store/internal/shipped_log.h: commits as bytes of a log file, each with its checksums.
// The format: docs/formats/store.md.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

struct ShippedCommit {
  Revision previous = 0;  // the store's last revision before it
  std::vector<Change> changes;
};

std::string encode_commit(Revision previous, std::span<const Change> changes);

// Reads the commits of a log one after another.
class ShippedLogReader {
 public:
  // `text` outlives the reader; `name` is for errors.
  ShippedLogReader(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  // Nothing at the end. Bytes at the end that are no whole commit are left out (is_cut()), as a
  // power failure leaves them. kInvalidInput names the place of a damaged commit that others
  // follow.
  Result<std::optional<ShippedCommit>> next();
  bool is_cut() const { return is_cut_; }
  // Bytes of all commits that were read.
  std::size_t position() const { return position_; }

 private:
  std::string_view text_;
  std::string name_;
  std::size_t position_ = 0;
  bool is_cut_ = false;
};

}  // namespace regatta::store
