#include "regatta/platform/container/rank_container.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"

namespace regatta::container {

std::string encode(const RankContainer& request) {
  nlohmann::json variables = nlohmann::json::array();
  for (const auto& [name, value] : request.environment)
    variables.push_back({{"name", name}, {"value", value}});
  const nlohmann::json json = {{"image", request.image},
                               {"command", request.command},
                               {"environment", std::move(variables)},
                               {"working_folder", request.working_folder},
                               {"read_only", request.is_read_only},
                               {"mounts", request.mounts},
                               {"own_mounts", request.own_mounts},
                               {"cdi", request.cdi_devices},
                               {"uid", request.uid},
                               {"gid", request.gid},
                               {"groups", request.groups},
                               {"run", request.run},
                               {"store", request.store},
                               {"name", request.name}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<RankContainer> decode_rank_container(std::string_view text) {
  REGATTA_TRY(reader, JsonReader::parse(text, "container"));
  RankContainer request;
  reader.read("image", request.image);
  reader.read("command", request.command);
  for (const JsonReader& variable : reader.at("environment").items()) {
    auto& [name, value] = request.environment.emplace_back();
    variable.read("name", name);
    variable.read("value", value);
  }
  reader.read("working_folder", request.working_folder);
  reader.read("read_only", request.is_read_only);
  reader.read("mounts", request.mounts);
  reader.read("own_mounts", request.own_mounts);
  reader.read("cdi", request.cdi_devices);
  constexpr IntRange kIds{0, std::numeric_limits<unsigned>::max()};
  reader.read("uid", request.uid, kIds);
  reader.read("gid", request.gid, kIds);
  for (const JsonReader& group : reader.at("groups").items())
    request.groups.push_back(group.as<unsigned>(kIds));
  reader.read("run", request.run);
  reader.read("store", request.store);
  reader.read("name", request.name);
  if (reader.status() && request.command.empty()) reader.fail("command: it is empty");
  return reader.finish(std::move(request));
}

std::string request_path(const std::string& run) {
  return run + "/container.json";
}

}  // namespace regatta::container
