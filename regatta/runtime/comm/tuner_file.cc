#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {
namespace {

using Json = nlohmann::json;

constexpr int kTuningVersion = 1;

Json to_json(const MeasuredSetting& tried) {
  return {{"algorithm", to_string(tried.setting.algorithm)},
          {"chunk_bytes", tried.setting.chunk_bytes},
          {"connections", tried.setting.connections},
          {"predicted_s", tried.predicted.value},
          {"observed_s", tried.observed.value},
          {"calls", tried.calls}};
}

Error wrong(const std::string& where, const std::string& problem) {
  return {Code::kInvalidInput, "tuning: " + where + ": " + problem +
                                   "; save it again with `regatta coll explain --save`"};
}

// A number of `object` that is whole and at least 0.
Result<std::int64_t> count_at(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer() || found->get<std::int64_t>() < 0)
    return wrong(where, std::string("\"") + key + "\" is no whole number from 0");
  return found->get<std::int64_t>();
}

Result<Seconds> time_at(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number() || !(found->get<double>() >= 0) ||
      !std::isfinite(found->get<double>()))
    return wrong(where, std::string("\"") + key + "\" is no time in seconds");
  return Seconds{found->get<double>()};
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// 0, or one that is carried out as it stands.
Result<std::size_t> chunk_bytes_at(const Json& object, const std::string& where) {
  REGATTA_TRY(count, count_at(object, "chunk_bytes", where));
  const auto bytes = static_cast<std::size_t>(count);
  if (bytes != 0 && (bytes < kChunkBytesLeast || bytes > kChunkBytesMost))
    return wrong(where, "\"chunk_bytes\" is neither 0 nor from " +
                            std::to_string(kChunkBytesLeast) + " to " +
                            std::to_string(kChunkBytesMost));
  return bytes;
}

Result<int> connections_at(const Json& object, const std::string& where) {
  REGATTA_TRY(count, count_at(object, "connections", where));
  if (count > kConnectionsMost)
    return wrong(
        where, "\"connections\" is no whole number from 0 to " + std::to_string(kConnectionsMost));
  return static_cast<int>(count);
}

Result<MeasuredSetting> parse_tried(const Json& object, const std::string& where) {
  if (!object.is_object()) return wrong(where, "no object");
  const auto algorithm = algorithm_named(text_at(object, "algorithm"));
  if (!algorithm) return wrong(where, "\"algorithm\" names none that there is");
  REGATTA_TRY(chunk_bytes, chunk_bytes_at(object, where));
  REGATTA_TRY(connections, connections_at(object, where));
  REGATTA_TRY(predicted, time_at(object, "predicted_s", where));
  REGATTA_TRY(observed, time_at(object, "observed_s", where));
  REGATTA_TRY(calls, count_at(object, "calls", where));
  MeasuredSetting tried;
  tried.calls = calls;
  tried.setting = {*algorithm, chunk_bytes, connections};
  tried.predicted = predicted;
  tried.observed = observed;
  return tried;
}

Result<TuningChoice> parse_choice(const Json& object, const std::string& where) {
  if (!object.is_object()) return wrong(where, "no object");
  const auto kind = kind_named(text_at(object, "operation"));
  if (!kind) return wrong(where, "\"operation\" names none that there is");
  REGATTA_TRY(bytes, count_at(object, "bytes_from", where));
  REGATTA_TRY(ranks, count_at(object, "ranks", where));
  REGATTA_TRY(servers, count_at(object, "servers", where));
  REGATTA_TRY(chosen, count_at(object, "chosen", where));
  TuningChoice choice{
      .kind = *kind,
      .bytes_from = static_cast<std::size_t>(bytes),
      .ranks = static_cast<int>(std::min<std::int64_t>(ranks, 1 << 24)),
      .servers = static_cast<int>(std::min<std::int64_t>(servers, 1 << 24)),
      .reason = reason_named(text_at(object, "why")).value_or(ChoiceReason::kLoaded),
      .chosen = static_cast<std::size_t>(chosen)};
  REGATTA_TRY(calls, count_at(object, "calls", where));
  choice.calls = calls;
  const auto tried = object.find("tried");
  if (tried == object.end() || !tried->is_array()) return wrong(where, "\"tried\" is no list");
  for (const Json& one : *tried) {
    REGATTA_TRY(parsed, parse_tried(one, where + ", tried " + std::to_string(choice.tried.size())));
    choice.tried.push_back(parsed);
  }
  if (choice.chosen >= choice.tried.size())
    return wrong(where, "\"chosen\" is not the place of one of those tried");
  return choice;
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

std::string format_tuning(const std::vector<TuningChoice>& choices) {
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
  return Json{{"version", kTuningVersion}, {"choices", list}}.dump(2) + "\n";
}

Result<std::vector<TuningChoice>> parse_tuning(const std::string& text) {
  std::vector<TuningChoice> choices;
  if (text.empty()) return choices;
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return wrong("the top", "no JSON object");
  REGATTA_TRY(version, count_at(root, "version", "the top"));
  if (version != kTuningVersion)
    return wrong("the top", "version " + std::to_string(version) + " is not known");
  const auto list = root.find("choices");
  if (list == root.end() || !list->is_array()) return wrong("the top", "\"choices\" is no list");
  for (const Json& one : *list) {
    REGATTA_TRY(choice, parse_choice(one, "choice " + std::to_string(choices.size())));
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace regatta::comm
