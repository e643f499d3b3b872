#include "regatta/runtime/train/internal/error_feedback_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/os/file.h"
#include "regatta/runtime/train/internal/checkpoint.h"

namespace regatta::train {
namespace {

using comm::compress::ErrorFeedback;

constexpr std::string_view kFeedbackMagic = "rgtfeed1";

std::string path_of(const std::string& folder, int step, const workload::RankCoordinates& at,
                    int dp) {
  return fmt::format("{}/pp{}-tp{}-dp{}.feedback", step_folder(folder, step), at.pp, at.tp, dp);
}

void put_number(std::string& text, std::uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Cuts a number off the front; false when there is none.
bool take_number(std::string_view& text, std::uint64_t& number) {
  if (text.size() < sizeof number) return false;
  std::memcpy(&number, text.data(), sizeof number);
  text.remove_prefix(sizeof number);
  return true;
}

Result<std::vector<ErrorFeedback>> read_buckets(const std::string& path) {
  const Result<std::string> text = os::read_file(path);
  if (!text) return broken_checkpoint(path, "the file is missing or unreadable");
  std::string_view rest = *text;
  std::uint64_t count = 0;
  if (!rest.starts_with(kFeedbackMagic)) return broken_checkpoint(path, "it holds no feedback");
  rest.remove_prefix(kFeedbackMagic.size());
  if (!take_number(rest, count)) return broken_checkpoint(path, "the file is truncated");
  std::vector<ErrorFeedback> buckets;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t size = 0;
    if (!take_number(rest, size) || size > rest.size())
      return broken_checkpoint(path, "the file is truncated");
    const auto* begin = reinterpret_cast<const std::byte*>(rest.data());
    auto bucket = comm::compress::error_feedback_from_bytes({begin, begin + size});
    if (!bucket) return broken_checkpoint(path, bucket.error().message);
    buckets.push_back(std::move(*bucket));
    rest.remove_prefix(size);
  }
  if (!rest.empty()) return broken_checkpoint(path, "something follows the last bucket");
  return buckets;
}

// into += old; what a calculation begins with is taken over once.
void add(ErrorFeedback& into, ErrorFeedback old) {
  if (into.residual.empty()) {
    into = std::move(old);
    return;
  }
  for (std::size_t i = 0; i < std::min(into.residual.size(), old.residual.size()); ++i)
    into.residual[i] += old.residual[i];
}

}  // namespace

Status save_error_feedback(const std::string& folder, int step, workload::RankCoordinates at,
                           const std::vector<ErrorFeedback>& buckets) {
  std::string text(kFeedbackMagic);
  put_number(text, buckets.size());
  for (const ErrorFeedback& bucket : buckets) {
    const std::vector<std::byte> bytes = to_bytes(bucket);
    put_number(text, bytes.size());
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  REGATTA_TRY_DO(os::make_folder(step_folder(folder, step)));
  return os::write_file_atomically(path_of(folder, step, at, at.dp), text);
}

Status load_error_feedback(const std::string& folder, int step, const ReplicaPosition& replica,
                           std::vector<ErrorFeedback>& buckets) {
  // More replicas than before: those that get none begin empty, but with the factors of the rest.
  std::vector<ErrorFeedback> loaded(buckets.size());
  for (int old = 0; old < replica.saved; ++old) {
    if (old != 0 && old % replica.dp != replica.at.dp) continue;
    const std::string path = path_of(folder, step, replica.at, old);
    REGATTA_TRY(read, read_buckets(path));
    if (read.size() != buckets.size())
      return broken_checkpoint(path, fmt::format("{} buckets instead of {}: it is of another job",
                                                 read.size(), buckets.size()));
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (old % replica.dp == replica.at.dp) {
        add(loaded[i], std::move(read[i]));
        continue;
      }
      loaded[i].factor = std::move(read[i].factor);
      loaded[i].calls = read[i].calls;
    }
  }
  buckets = std::move(loaded);
  return {};
}

}  // namespace regatta::train
