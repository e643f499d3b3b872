#include "regatta/runtime/train/internal/checkpoint.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/workload/job.h"

namespace regatta::train {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::array<char, 8> kMagic{'r', 'g', 't', 'c', 'k', 'p', 't', '1'};

struct Header {
  std::array<char, 8> magic = kMagic;
  std::int64_t step = 0;
  std::int64_t elements = 0;
};

std::string part_path(const std::string& folder, int step, workload::RankCoordinates at) {
  return fmt::format("{}/pp{}-tp{}.part", step_folder(folder, step), at.pp, at.tp);
}

std::string manifest_path(const std::string& folder, int step) {
  return step_folder(folder, step) + "/manifest.json";
}

std::array<const Tensor*, 3> arrays_of(const Parameters& parameters) {
  return {&parameters.master, &parameters.first_moment, &parameters.second_moment};
}

std::uint64_t checksum(const Parameters& parameters) {
  std::uint64_t hash = kFnv1aBasis;
  for (const Tensor* array : arrays_of(parameters))
    hash = fnv1a_words(std::as_bytes(std::span(array->data_ptr<float>(), as_index(array->numel()))),
                       hash);
  return hash;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const std::string& path, const char* mode) {
  return {std::fopen(path.c_str(), mode), &std::fclose};
}

bool write_part(std::FILE* file, int step, const Parameters& parameters) {
  const Header header{kMagic, step, parameters.master.numel()};
  bool good = std::fwrite(&header, sizeof header, 1, file) == 1;
  for (const Tensor* array : arrays_of(parameters)) {
    const auto count = static_cast<std::size_t>(array->numel());
    good = good && std::fwrite(array->data_ptr(), sizeof(float), count, file) == count;
  }
  const std::uint64_t sum = checksum(parameters);
  good = good && std::fwrite(&sum, sizeof sum, 1, file) == 1;
  return good && std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
}

Error unreadable(const std::string& path) {
  return Error{Code::kInvalidInput,
               fmt::format("checkpoint {}: the file is missing or unreadable; make its folder "
                           "readable on every server, or remove it to resume from an older one",
                           path)};
}

Status check_size(const std::string& path, std::int64_t elements) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return unreadable(path);
  const auto expected = sizeof(Header) + sizeof(std::uint64_t) +
                        3 * sizeof(float) * static_cast<std::size_t>(elements);
  if (size == expected) return {};
  return broken_checkpoint(
      path, fmt::format("{} bytes instead of {}: the file is truncated or of another job", size,
                        expected));
}

// Given or not: the same split is the same parts.
nlohmann::json layers_of_stages(const workload::ModelShape& model,
                                const workload::Strategy& strategy) {
  auto layers = nlohmann::json::array();
  for (int stage = 0; stage < strategy.pp; ++stage)
    layers.push_back(workload::stage_layers(model, strategy, stage).count);
  return layers;
}

}  // namespace

Error broken_checkpoint(const std::string& path, std::string_view what) {
  return Error{
      Code::kInvalidInput,
      fmt::format("checkpoint {}: {}; remove its folder to resume from an older one", path, what)};
}

std::string step_folder(const std::string& folder, int step) {
  return fmt::format("{}/{}{:08}", folder, kPrefix, step);
}

Status save_part(const std::string& folder, int step, workload::RankCoordinates at,
                 const Parameters& parameters) {
  REGATTA_TRY_DO(os::make_folder(step_folder(folder, step)));
  const std::string path = part_path(folder, step, at);
  const std::string beside = path + ".new";
  File file = open_file(beside, "wb");
  if (file == nullptr || !write_part(file.get(), step, parameters))
    return os::errno_error("checkpoint " + beside);
  file.reset();
  if (std::rename(beside.c_str(), path.c_str()) != 0) return os::errno_error("checkpoint " + path);
  return {};
}

Status save_manifest(const std::string& folder, int step, const workload::Job& job,
                     const workload::Strategy& strategy) {
  const nlohmann::json manifest{{"format", 1},
                                {"step", step},
                                {"model", workload::model_to_json(job.model)},
                                {"precision", workload::to_string(job.precision)},
                                {"seed", job.seed},
                                {"strategy", workload::strategy_to_json(strategy)}};
  return os::write_file_atomically(manifest_path(folder, step), manifest.dump(2) + "\n");
}

Result<int> newest_checkpoint(const std::string& folder) {
  int newest = -1;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int step = -1;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (parsed.ec != std::errc() || parsed.ptr != end || step <= newest) continue;
    std::error_code missing;
    if (std::filesystem::exists(manifest_path(folder, step), missing)) newest = step;
  }
  if (newest >= 0) return newest;
  return Error{
      Code::kNotFound,
      fmt::format("checkpoint folder {}: holds no complete checkpoint; start without resume",
                  folder)};
}

Status check_manifest(const std::string& folder, int step, const workload::Job& job,
                      const workload::Strategy& strategy) {
  const std::string path = manifest_path(folder, step);
  const Result<std::string> text = os::read_text_file(path);
  if (!text) return unreadable(path);
  const Result<JsonReader> parsed = JsonReader::parse(*text, "manifest");
  if (!parsed) return broken_checkpoint(path, parsed.error().message);
  const JsonReader& saved = *parsed;
  const workload::ModelShape saved_model = workload::read_model(saved.at("model"));
  const workload::Strategy saved_strategy = workload::read_strategy(saved.at("strategy"));
  workload::Precision saved_precision{};
  saved.read("precision", saved_precision, workload::kPrecisions);
  if (const Status status = saved.status(); !status)
    return broken_checkpoint(path, status.error().message);
  const auto differs = [&path](std::string_view key, const nlohmann::json& was,
                               const nlohmann::json& is) -> Status {
    if (was == is) return {};
    return Error{Code::kInvalidInput,
                 fmt::format("checkpoint {}: saved with {} {}, not {}; resume with that one or "
                             "start without resume",
                             path, key, was.dump(), is.dump())};
  };
  // Written again, so that keys which an earlier version lacked have their defaults.
  const auto was = workload::model_to_json(saved_model);
  const auto is = workload::model_to_json(job.model);
  for (const auto& [key, value] : is.items()) {
    if (key == "preset") continue;
    REGATTA_TRY_DO(differs(key, was.value(key, nlohmann::json()), value));
  }
  REGATTA_TRY_DO(differs("tp", saved_strategy.tp, strategy.tp));
  REGATTA_TRY_DO(differs("pp", saved_strategy.pp, strategy.pp));
  REGATTA_TRY_DO(differs("stage_layers", layers_of_stages(saved_model, saved_strategy),
                         layers_of_stages(job.model, strategy)));
  return differs("precision", workload::to_string(saved_precision),
                 workload::to_string(job.precision));
}

int saved_error_feedbacks(const std::string& folder, int step) {
  const Result<std::string> text = os::read_text_file(manifest_path(folder, step));
  const Result<JsonReader> saved = JsonReader::parse(text.value_or(""), "manifest");
  if (!saved) return 0;
  const workload::Strategy strategy = workload::read_strategy(saved->at("strategy"));
  const bool is_compressed = strategy.compression != workload::GradientCompression::kNone;
  return saved->status() && strategy.dp > 1 && is_compressed ? strategy.dp : 0;
}

Status load_part(const std::string& folder, int step, workload::RankCoordinates at,
                 Parameters& parameters) {
  const std::string path = part_path(folder, step, at);
  const std::int64_t elements = parameters.master.numel();
  REGATTA_TRY_DO(check_size(path, elements));
  const File file = open_file(path, "rb");
  if (file == nullptr) return unreadable(path);
  Header header;
  bool good = std::fread(&header, sizeof header, 1, file.get()) == 1;
  if (!good || header.magic != kMagic || header.step != step || header.elements != elements)
    return broken_checkpoint(path, "its head is not that of this step and job");
  for (const Tensor* array : arrays_of(parameters)) {
    const auto count = static_cast<std::size_t>(elements);
    good = good && std::fread(array->data_ptr(), sizeof(float), count, file.get()) == count;
  }
  std::uint64_t sum = 0;
  good = good && std::fread(&sum, sizeof sum, 1, file.get()) == 1;
  if (!good || sum != checksum(parameters))
    return broken_checkpoint(path, "its content changed since it was written");
  refresh_compute(parameters);
  return {};
}

}  // namespace regatta::train
