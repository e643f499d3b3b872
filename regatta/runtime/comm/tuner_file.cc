#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {
namespace {

using Json = nlohmann::json;

constexpr int kTuningVersion = 1;
constexpr IntRange kCount{0, std::numeric_limits<long long>::max()};

Json to_json(const MeasuredSetting& tried) {
  return {{"algorithm", to_string(tried.setting.algorithm)},
          {"chunk_bytes", tried.setting.chunk_bytes},
          {"connections", tried.setting.connections},
          {"predicted_s", tried.predicted.value},
          {"observed_s", tried.observed.value},
          {"calls", tried.calls}};
}

// 0, or a size that a schedule can use as it is.
std::size_t chunk_bytes_of(const JsonReader& tried) {
  const JsonReader reader = tried.at("chunk_bytes");
  const auto bytes = reader.as<std::size_t>();
  if (bytes != 0 && (bytes < kChunkBytesLeast || bytes > kChunkBytesMost))
    reader.fail(fmt::format("neither 0 nor from {} to {}", kChunkBytesLeast, kChunkBytesMost));
  return bytes;
}

MeasuredSetting parse_tried(const JsonReader& reader) {
  const JsonReader name = reader.at("algorithm");
  const auto algorithm = algorithm_named(name.as<std::string>());
  if (!algorithm) name.fail("names no algorithm");
  MeasuredSetting tried;
  tried.setting.algorithm = algorithm.value_or(Algorithm{});
  tried.setting.chunk_bytes = chunk_bytes_of(reader);
  reader.read("connections", tried.setting.connections, IntRange{0, kConnectionsMost});
  reader.read("predicted_s", tried.predicted, kNotNegative);
  reader.read("observed_s", tried.observed, kNotNegative);
  reader.read("calls", tried.calls, kCount);
  return tried;
}

TuningChoice parse_choice(const JsonReader& reader) {
  const JsonReader name = reader.at("operation");
  const auto kind = kind_named(name.as<std::string>());
  if (!kind) name.fail("names no operation");
  TuningChoice choice{.kind = kind.value_or(CallKind{})};
  std::string reason;
  reader.read("bytes_from", choice.bytes_from);
  reader.read("ranks", choice.ranks, IntRange{0});
  reader.read("servers", choice.servers, IntRange{0});
  reader.read("chosen", choice.chosen);
  reader.read("calls", choice.calls, kCount);
  reader.read_if("why", reason);
  choice.reason = reason_named(reason).value_or(ChoiceReason::kLoaded);
  for (const JsonReader& one : reader.at("tried").items())
    choice.tried.push_back(parse_tried(one));
  if (choice.chosen >= choice.tried.size())
    reader.at("chosen").fail(fmt::format("not below {}, the length of tried", choice.tried.size()));
  return choice;
}

Result<std::vector<TuningChoice>> parse_choices(const std::string& text) {
  REGATTA_TRY(root, JsonReader::parse(text, "tuning"));
  const JsonReader version = root.at("version");
  if (const int number = version.as<int>(); number != kTuningVersion)
    version.fail(fmt::format("{} is unknown", number));
  std::vector<TuningChoice> choices;
  for (const JsonReader& one : root.at("choices").items())
    choices.push_back(parse_choice(one));
  return root.finish(std::move(choices));
}

}  // namespace

std::string buffers_of(const TuningChoice& choice) {
  switch (choice.tried[choice.chosen].setting.algorithm) {
    case Algorithm::kStaged:
      return "private";
    case Algorithm::kInPlace:
      return "shared";
    default:
      return "";
  }
}

Json tuning_json(const std::vector<TuningChoice>& choices) {
  Json list = Json::array();
  for (const TuningChoice& choice : choices) {
    Json tried = Json::array();
    for (const MeasuredSetting& one : choice.tried)
      tried.push_back(to_json(one));
    list.push_back({{"operation", to_string(choice.kind)},
                    {"bytes_from", choice.bytes_from},
                    {"ranks", choice.ranks},
                    {"servers", choice.servers},
                    {"chosen", choice.chosen},
                    {"why", to_string(choice.reason)},
                    {"calls", choice.calls},
                    {"tried", tried}});
    if (const std::string buffers = buffers_of(choice); !buffers.empty())
      list.back()["buffers"] = buffers;
  }
  return {{"version", kTuningVersion}, {"choices", list}};
}

std::string format_tuning(const std::vector<TuningChoice>& choices) {
  return tuning_json(choices).dump(2) + "\n";
}

Result<std::vector<TuningChoice>> parse_tuning(const std::string& text) {
  if (text.empty()) return std::vector<TuningChoice>{};
  auto choices = parse_choices(text);
  if (choices) return choices;
  return Error{choices.error().code,
               choices.error().message + "; save it again with `regatta coll explain --save`"};
}

}  // namespace regatta::comm
