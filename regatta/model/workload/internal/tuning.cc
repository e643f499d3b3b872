#include "regatta/model/workload/internal/tuning.h"

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"

namespace regatta::workload {
namespace {

constexpr int kRankMax = 65'536;

// As Megatron calls them.
struct Target {
  const char* name;
  bool Adapters::*is_adapted;
};
constexpr std::array kTargets = {
    Target{"linear_qkv", &Adapters::qkv}, Target{"linear_proj", &Adapters::proj},
    Target{"linear_fc1", &Adapters::fc1}, Target{"linear_fc2", &Adapters::fc2}};

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& target : kTargets)
    names.emplace_back(target.name);
  return names;
}

// "": all of `names` are targets, and are marked in `adapters`.
std::string unknown_target(const std::vector<std::string>& names, Adapters& adapters) {
  for (const std::string& name : names) {
    bool is_known = false;
    for (const Target& target : kTargets) {
      if (name != target.name) continue;
      adapters.*target.is_adapted = true;
      is_known = true;
    }
    if (!is_known) return name;
  }
  return "";
}

std::string choose_text() {
  return "choose some of " + join(target_names(), ", ");
}

}  // namespace

Adapters read_tuning(const YamlMap& map) {
  map.allow({"kind", "rank", "targets"});
  enum class Kind { kFull, kLora };
  const auto kind = map.choice<Kind>("kind", {{"full", Kind::kFull}, {"lora", Kind::kLora}});
  if (kind == Kind::kFull) {
    for (const char* key : {"rank", "targets"})
      if (map.has(key)) map.fail(key, "belongs to kind: lora; leave it out where all is trained");
    return {};
  }
  Adapters adapters;
  adapters.rank = map.integer("rank", {1, kRankMax});
  if (!map.has("targets")) {
    unknown_target(target_names(), adapters);
    return adapters;
  }
  const std::vector<std::string> names = map.texts("targets");
  const std::string unknown = unknown_target(names, adapters);
  if (names.empty()) map.fail("targets", "empty; " + choose_text());
  if (!unknown.empty())
    map.fail("targets", fmt::format("no matrix is called '{}'; {}", unknown, choose_text()));
  return adapters;
}

Adapters read_tuning(const JsonReader& reader) {
  Adapters adapters;
  reader.at("kind").choice({"lora"});
  reader.read("rank", adapters.rank, IntRange{1, kRankMax});
  std::vector<std::string> names;
  reader.read("targets", names);
  if (names.empty() || !unknown_target(names, adapters).empty())
    reader.at("targets").fail(choose_text());
  return adapters;
}

nlohmann::json tuning_to_json(const Adapters& adapters) {
  std::vector<std::string> names;
  for (const Target& target : kTargets)
    if (adapters.*target.is_adapted) names.emplace_back(target.name);
  return {{"kind", "lora"}, {"rank", adapters.rank}, {"targets", names}};
}

}  // namespace regatta::workload
