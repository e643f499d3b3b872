#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "regatta/base/os/file.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

constexpr int kFormatVersion = 1;
using Json = nlohmann::json;

const char* name_of(OperationStatus status) {
  switch (status) {
    case OperationStatus::kNone:
      return "none";
    case OperationStatus::kRuns:
      return "runs";
    case OperationStatus::kDone:
      return "done";
    case OperationStatus::kFailed:
      return "failed";
  }
  return "none";
}

OperationStatus status_named(const std::string& name) {
  for (const OperationStatus status :
       {OperationStatus::kRuns, OperationStatus::kDone, OperationStatus::kFailed})
    if (name == name_of(status)) return status;
  return OperationStatus::kNone;
}

// In text: JSON readers of other languages keep 53 bits of a number.
std::string hex(std::uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i)
    text[15 - i] = kDigits[value >> (4 * i) & 0xfU];
  return text;
}

std::uint64_t number_of(const std::string& hex) {
  return std::stoull(hex, nullptr, 16);
}

Json to_json(const OperationView& operation) {
  Json json = {{"sequence", operation.sequence},
               {"operation", describe_call(operation.call, operation.bytes)},
               {"call", hex(operation.call)},
               {"size_bytes", operation.bytes},
               {"moved_bytes", operation.moved},
               {"started_s", operation.started.value},
               {"progressed_s", operation.progressed.value},
               {"status", name_of(operation.status)}};
  if (operation.lane == Lane::kTransfer) json["is_transfer"] = true;
  if (operation.error) json["error"] = static_cast<int>(*operation.error);
  return json;
}

OperationView operation_from(const Json& json) {
  OperationView view;
  view.lane = json.value("is_transfer", false) ? Lane::kTransfer : Lane::kCollective;
  json.at("sequence").get_to(view.sequence);
  view.call = number_of(json.at("call"));
  json.at("size_bytes").get_to(view.bytes);
  json.at("moved_bytes").get_to(view.moved);
  json.at("started_s").get_to(view.started.value);
  json.at("progressed_s").get_to(view.progressed.value);
  view.status = status_named(json.at("status"));
  if (json.contains("error")) view.error = static_cast<Code>(json.at("error").get<int>());
  return view;
}

GroupView group_from(const Json& json) {
  GroupView view;
  view.id = number_of(json.at("id"));
  json.at("rank").get_to(view.rank);
  json.at("members").get_to(view.members);
  json.at("submitted").get_to(view.submitted);
  json.at("ended").get_to(view.ended);
  if (json.contains("collective")) view.collective = operation_from(json["collective"]);
  if (json.contains("transfer")) view.transfer = operation_from(json["transfer"]);
  return view;
}

RankView view_from(const Json& json) {
  RankView view;
  view.pid = json.value("pid", 0);
  json.at("job").get_to(view.job);
  json.at("server").get_to(view.server);
  view.world = number_of(json.at("world"));
  json.at("rank").get_to(view.rank);
  json.at("started_s").get_to(view.started.value);
  json.at("ticked_s").get_to(view.ticked.value);
  json.at("verdict").get_to(view.verdict);
  view.judged = {json.value("judged_s", 0.0)};
  json.at("error").get_to(view.error);
  for (const Json& peer : json.at("peers"))
    view.peers.push_back({.name = peer.at("name"),
                          .sent_bytes = peer.at("sent_bytes"),
                          .has_departed = peer.at("has_departed")});
  for (const Json& group : json.at("communicators"))
    view.groups.push_back(group_from(group));
  for (const Json& flight : json.at("flights"))
    view.flights.push_back({.number = flight.at("number"),
                            .group = number_of(flight.at("communicator")),
                            .operation = operation_from(flight)});
  return view;
}

bool ranks_fit(const RankView& view) {
  const auto fits = [&](int rank) { return rank >= 0 && rank < view.world_size(); };
  return fits(view.rank) &&
         std::all_of(view.groups.begin(), view.groups.end(), [&](const GroupView& group) {
           return std::all_of(group.members.begin(), group.members.end(), fits);
         });
}

}  // namespace

Json view_to_json(const RankView& view) {
  Json json = {{"version", kFormatVersion},
               {"job", view.job},
               {"world", hex(view.world)},
               {"rank", view.rank},
               {"world_size", view.world_size()},
               {"name", view.name()},
               {"server", view.server},
               {"pid", view.pid},
               {"started_s", view.started.value},
               {"ticked_s", view.ticked.value},
               {"verdict", view.verdict},
               {"judged_s", view.judged.value},
               {"error", view.error},
               {"peers", Json::array()},
               {"communicators", Json::array()},
               {"flights", Json::array()}};
  if (view.state != 0) json["state"] = std::string(1, view.state);
  for (const PeerView& peer : view.peers)
    json["peers"].push_back({{"name", peer.name},
                             {"sent_bytes", peer.sent_bytes},
                             {"has_departed", peer.has_departed}});
  for (const GroupView& group : view.groups) {
    Json one = {{"id", hex(group.id)},
                {"rank", group.rank},
                {"members", group.members},
                {"submitted", group.submitted},
                {"ended", group.ended}};
    if (group.collective.status != OperationStatus::kNone)
      one["collective"] = to_json(group.collective);
    if (group.transfer.status != OperationStatus::kNone) one["transfer"] = to_json(group.transfer);
    json["communicators"].push_back(std::move(one));
  }
  for (const FlightView& flight : view.flights) {
    Json one = to_json(flight.operation);
    one["number"] = flight.number;
    one["communicator"] = hex(flight.group);
    json["flights"].push_back(std::move(one));
  }
  return json;
}

Result<RankView> view_from_json(const Json& json, const std::string& source) {
  try {
    if (json.at("version").get<int>() != kFormatVersion)
      return Error{Code::kInvalidInput, source + ": a flight file of another version of regatta"};
    RankView view = view_from(json);
    if (ranks_fit(view)) return view;
    return Error{Code::kInvalidInput, source +
                                          ": no flight file of regatta: a rank is not in its "
                                          "world"};
  } catch (const std::exception&) {
    return Error{Code::kInvalidInput, source +
                                          ": no flight file of regatta: a key is missing or of "
                                          "another kind; give files that begin regatta-flight-"};
  }
}

std::string flight_path(const std::string& folder, const RankView& view) {
  std::string job = view.job.empty() ? "job" : view.job;
  for (char& c : job)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-')
      c = '_';
  return folder + "/regatta-flight-" + job + "-rank" + std::to_string(view.rank) + ".json";
}

Status write_flight_file(const std::string& folder, const RankView& view) {
  const std::string text =
      view_to_json(view).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  Status written = os::make_folder(folder);
  if (written) written = os::write_file_atomically(flight_path(folder, view), text);
  if (written) return written;
  return Error{written.error().code, written.error().message +
                                         "; name a folder that can be written with "
                                         "REGATTA_FLIGHT_DIR or CommunicatorOptions::flight_dir"};
}

Result<RankView> read_flight_file(const std::string& path) {
  REGATTA_TRY(text, os::read_file(path));
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return Error{Code::kInvalidInput, path + ": no JSON; give files that begin regatta-flight-"};
  return view_from_json(json, path);
}

}  // namespace regatta::comm
