#include "regatta/runtime/train/internal/dataset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/os/file.h"

namespace regatta::train {
namespace {

namespace fs = std::filesystem;

Result<std::vector<std::string>> files_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Error{
        Code::kInvalidInput,
        fmt::format("data {}: no such file or folder; correct data.text in the job", path)};
  }
  if (fs::is_regular_file(status)) return std::vector<std::string>{path};
  if (!fs::is_directory(status)) {
    return Error{Code::kInvalidInput,
                 fmt::format("data {}: is no file and no folder, and a device or pipe may have no "
                             "end; correct data.text in the job",
                             path)};
  }
  std::vector<std::string> files;
  fs::recursive_directory_iterator entry(path, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code broken_link;
    if (entry->is_regular_file(broken_link)) files.push_back(entry->path().string());
    entry.increment(error);
  }
  if (error) {
    return Error{Code::kInvalidInput, fmt::format("data {}: cannot list it: {}; check its rights",
                                                  path, error.message())};
  }
  std::sort(files.begin(), files.end());
  return files;
}

Status append_file(const std::string& path, std::vector<std::uint8_t>& bytes) {
  const Result<std::string> text = os::read_file(path);
  if (!text) {
    return Error{Code::kInvalidInput,
                 fmt::format("data {}; make it readable or correct data.text in the job",
                             text.error().message)};
  }
  bytes.insert(bytes.end(), text->begin(), text->end());
  return {};
}

// A permutation of [0, 2^(2 half_bits)) chosen by `key`: four rounds of a Feistel network.
std::uint64_t permute(std::uint64_t value, int half_bits, std::uint64_t key) {
  const std::uint64_t half_mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits;
  std::uint64_t right = value & half_mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t next = left ^ (splitmix(key ^ splitmix(right + (round << 56))) & half_mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

}  // namespace

long long Dataset::windows() const {
  return (static_cast<long long>(bytes.size()) - 1) / seq;
}

Result<Dataset> load_dataset(const std::string& path, int seq, int vocab) {
  REGATTA_TRY(files, files_of(path));
  Dataset dataset;
  dataset.path = path;
  dataset.seq = seq;
  for (const std::string& file : files)
    REGATTA_TRY_DO(append_file(file, dataset.bytes));
  const auto needed = static_cast<std::size_t>(seq) + 1;
  if (dataset.bytes.size() < needed) {
    return Error{
        Code::kInvalidInput,
        fmt::format("data {}: {} bytes are fewer than one sample of seq + 1 = {}; give more "
                    "text or a smaller seq",
                    path, dataset.bytes.size(), needed)};
  }
  const std::uint8_t largest = *std::max_element(dataset.bytes.begin(), dataset.bytes.end());
  if (largest >= vocab) {
    return Error{Code::kInvalidInput,
                 fmt::format("data {}: byte {} is no token of vocab {}; set vocab to 256", path,
                             largest, vocab)};
  }
  return dataset;
}

long long window_of(std::uint64_t seed, long long index, long long windows) {
  const auto count = static_cast<std::uint64_t>(windows);
  const auto epoch = static_cast<std::uint64_t>(index / windows);
  int half_bits = 1;
  while ((std::uint64_t{1} << (2 * half_bits)) < count)
    ++half_bits;
  // Values past the end are permuted again until they fall inside: still a permutation.
  auto value = static_cast<std::uint64_t>(index % windows);
  do {
    value = permute(value, half_bits, splitmix(seed) ^ splitmix(epoch + 1));
  } while (value >= count);
  return static_cast<long long>(value);
}

const std::uint8_t* sample(const Dataset& dataset, std::uint64_t seed, long long index) {
  return dataset.bytes.data() + window_of(seed, index, dataset.windows()) * dataset.seq;
}

}  // namespace regatta::train
