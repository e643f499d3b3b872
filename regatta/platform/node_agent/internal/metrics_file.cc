#include "regatta/platform/node_agent/internal/metrics_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::node_agent {
namespace {

constexpr off_t kReadMost = 8 << 20;  // of a file
constexpr off_t kTrimBeyond = 2 * kReadMost;
constexpr std::size_t kLineMost = 4096;
constexpr std::size_t kPredictedMost = 64;  // keys
constexpr int kAttemptsMost = 32;           // whose files are read

// The last kReadMost bytes, from a whole line on. The user may have put anything in its place.
std::string last_bytes(const std::string& path) {
  const os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat state {};
  if (!fd || ::fstat(fd.get(), &state) != 0 || !S_ISREG(state.st_mode)) return "";
  const off_t begin = std::max<off_t>(0, state.st_size - kReadMost);
  std::string text(static_cast<std::size_t>(state.st_size - begin), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = ::pread(fd.get(), text.data() + filled, text.size() - filled,
                                  begin + static_cast<off_t>(filled));
    if (count <= 0) break;
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  if (begin > 0) text.erase(0, std::min(text.size(), text.find('\n') + 1));
  return text;
}

std::optional<double> number_in(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) return std::nullopt;
  if (found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Whole numbers up to 2^53 alone.
std::int64_t whole(std::optional<double> number) {
  constexpr double kMost = 9007199254740992.0;
  if (!number || !(*number >= 0 && *number <= kMost)) return 0;
  return static_cast<std::int64_t>(*number);
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= MetricLines::kNameBytesMax &&
         printable(text, MetricLines::kNameBytesMax) == text;
}

}  // namespace

std::string metrics_path(const std::string& run) {
  return run + "/metrics";
}

void MetricSeries::add(const Point& point) {
  while (!kept_.empty() && kept_.back().step >= point.step)
    kept_.pop_back();
  last_ = point;
  has_last_ = true;
  if (!kept_.empty() && ++skipped_ < stride_) return;
  skipped_ = 0;
  kept_.push_back(point);
  if (kept_.size() < kPointsMax) return;
  for (std::size_t i = 0; 2 * i < kept_.size(); ++i)
    kept_[i] = kept_[2 * i];
  kept_.resize((kept_.size() + 1) / 2);
  stride_ *= 2;
}

std::vector<MetricSeries::Point> MetricSeries::points() const {
  std::vector<Point> points = kept_;
  if (has_last_ && (points.empty() || points.back().step < last_.step)) points.push_back(last_);
  return points;
}

void MetricLines::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return;
    if (end <= kLineMost) add_line(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

void MetricLines::add_line(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return;
  if (const auto found = object.find("predicted"); found != object.end()) {
    nlohmann::json predicted = nlohmann::json::object();
    if (!found->is_object() || found->size() > kPredictedMost) return;
    for (const auto& [key, value] : found->items())
      if (is_name(key) && (value.is_number() ||
                           (value.is_string() && value.get_ref<const std::string&>().size() < 500)))
        predicted[key] = value;
    predicted_ = predicted.dump();
    return;
  }
  const auto name = object.find("name");
  const auto value = number_in(object, "value");
  const auto step = number_in(object, "step");
  if (name == object.end() || !name->is_string() || !value || !step || !(*step >= 0)) return;
  const auto& text = name->get_ref<const std::string&>();
  if (!is_name(text) || (series_.size() >= kSeriesMax && !series_.contains(text))) return;
  MetricSeries& series = series_[text];
  const auto unit = object.find("unit");
  if (unit != object.end() && unit->is_string() && is_name(unit->get_ref<const std::string&>()))
    series.unit = unit->get<std::string>();
  series.add(
      {.step = whole(step), .time_ms = whole(number_in(object, "time_ms")), .value = *value});
}

std::string MetricLines::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [name, series] : series_) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    nlohmann::ordered_json times = nlohmann::ordered_json::array();
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (const MetricSeries::Point& point : series.points()) {
      steps.push_back(point.step);
      times.push_back(point.time_ms > 0 ? nlohmann::ordered_json(point.time_ms)
                                        : nlohmann::ordered_json());
      values.push_back(point.value);  // a value that is no number is written as null
    }
    list.push_back({{"name", name},
                    {"unit", series.unit},
                    {"steps", std::move(steps)},
                    {"times_ms", std::move(times)},
                    {"values", std::move(values)}});
  }
  return "{\"series\":" + list.dump() + ",\"predicted\":" + predicted_ + "}";
}

std::string read_metrics(const std::string& run) {
  MetricLines lines;
  // FOLDER/JOB.ATTEMPT.REPLICA
  const std::size_t replica = run.rfind('.');
  const std::size_t attempt = replica == std::string::npos || replica == 0
                                  ? std::string::npos
                                  : run.rfind('.', replica - 1);
  if (attempt != std::string::npos) {
    const auto number =
        parse_number<int>(std::string_view(run).substr(attempt + 1, replica - attempt - 1));
    for (int i = std::max(1, number.value_or(1) - kAttemptsMost); number && i < *number; ++i)
      lines.add(last_bytes(
          metrics_path(run.substr(0, attempt + 1) + std::to_string(i) + run.substr(replica))));
  }
  lines.add(last_bytes(metrics_path(run)));
  return lines.json();
}

bool make_metrics_file(const std::string& run, const unsigned* uid, const unsigned* gid) {
  const os::UniqueFd fd(::open(metrics_path(run).c_str(),
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  return fd && (uid == nullptr || ::fchown(fd.get(), *uid, *gid) == 0);
}

void trim_metrics(const std::string& run) {
  struct stat state {};
  const std::string path = metrics_path(run);
  if (::lstat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode) || state.st_size < kTrimBeyond)
    return;
  constexpr off_t kBlock = 512;  // of st_blocks, stat(2)
  if (state.st_blocks * kBlock < kTrimBeyond) return;
  const os::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return;
  static_cast<void>(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                state.st_size - kReadMost));
}

}  // namespace regatta::node_agent
