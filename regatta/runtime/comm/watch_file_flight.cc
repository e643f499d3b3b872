#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

constexpr int kFormatVersion = 1;
using Json = nlohmann::json;

constexpr EnumNames<4> kStatuses = {"none", "runs", "done", "failed"};

// As text: JSON readers of other languages keep 53 bits of a number.
std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

// The number that hex() wrote.
std::uint64_t read_hex(const JsonReader& reader) {
  const auto value = parse_number<std::uint64_t>(reader.as<std::string>(), 16);
  if (!value) reader.fail("expected a number in hex");
  return value.value_or(0);
}

Json to_json(const OperationView& operation) {
  Json json = {{"sequence", operation.sequence},
               {"operation", describe_call(operation.call, operation.bytes)},
               {"call", hex(operation.call)},
               {"size_bytes", operation.bytes},
               {"moved_bytes", operation.moved},
               {"started_s", operation.started.value},
               {"progressed_s", operation.progressed.value},
               {"status", enum_name(kStatuses, operation.status)}};
  if (operation.lane == Lane::kTransfer) json["is_transfer"] = true;
  if (operation.error) json["error"] = static_cast<int>(*operation.error);
  return json;
}

OperationView read_operation(const JsonReader& reader) {
  OperationView view;
  if (reader.has("is_transfer") && reader.at("is_transfer").as<bool>()) view.lane = Lane::kTransfer;
  reader.read("sequence", view.sequence);
  view.call = read_hex(reader.at("call"));
  reader.read("size_bytes", view.bytes);
  reader.read("moved_bytes", view.moved);
  reader.read("started_s", view.started);
  reader.read("progressed_s", view.progressed);
  reader.read("status", view.status, kStatuses);
  if (reader.has("error"))
    view.error = static_cast<Code>(
        reader.at("error").as<int>(IntRange{0, static_cast<int>(Code::kUnsupported)}));
  return view;
}

GroupView read_group(const JsonReader& reader) {
  GroupView view;
  view.id = read_hex(reader.at("id"));
  reader.read("rank", view.rank);
  reader.read("members", view.members);
  reader.read("submitted", view.submitted);
  reader.read("ended", view.ended);
  if (reader.has("collective")) view.collective = read_operation(reader.at("collective"));
  if (reader.has("transfer")) view.transfer = read_operation(reader.at("transfer"));
  return view;
}

RankView read_rank(const JsonReader& reader) {
  RankView view;
  reader.read_if("pid", view.pid);
  reader.read("job", view.job);
  reader.read("server", view.server);
  view.world = read_hex(reader.at("world"));
  reader.read("rank", view.rank);
  reader.read("started_s", view.started);
  reader.read("ticked_s", view.ticked);
  reader.read("verdict", view.verdict);
  reader.read_if("judged_s", view.judged);
  reader.read("error", view.error);
  for (const JsonReader& peer : reader.at("peers").items())
    view.peers.push_back({.name = peer.at("name").as<std::string>(),
                          .sent_bytes = peer.at("sent_bytes").as<std::uint64_t>(),
                          .has_departed = peer.at("has_departed").as<bool>()});
  for (const JsonReader& group : reader.at("communicators").items())
    view.groups.push_back(read_group(group));
  for (const JsonReader& flight : reader.at("flights").items())
    view.flights.push_back({.number = flight.at("number").as<std::uint64_t>(),
                            .group = read_hex(flight.at("communicator")),
                            .operation = read_operation(flight)});
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
  const JsonReader reader(json, source);
  const JsonReader version = reader.at("version");
  if (const int number = version.as<int>(); number != kFormatVersion)
    version.fail(std::to_string(number) + " is unknown");
  RankView view = read_rank(reader);
  if (!ranks_fit(view)) reader.fail("a rank is not in its world");
  const Status read = reader.status();
  if (read) return view;
  return Error{Code::kInvalidInput, read.error().message +
                                        ": no flight file of this version of regatta; give files "
                                        "that begin regatta-flight-"};
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
  REGATTA_TRY(text, os::read_text_file(path));
  const auto reader = JsonReader::parse(text, path);
  if (!reader)
    return Error{Code::kInvalidInput,
                 reader.error().message + "; give files that begin regatta-flight-"};
  return view_from_json(reader->raw(), path);
}

}  // namespace regatta::comm
