#include "regatta/network/heal/healer_state.h"

#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/os/file.h"

namespace regatta::heal {
namespace {

using nlohmann::json;

constexpr const char* kName = "state of the healer";
constexpr const char* kHeartbeatName = "heartbeat of the healer";

json state_of_fault(const Fault& fault) {
  return {{"place", static_cast<int>(fault.place)},
          {"link", fault.link},
          {"node", fault.node.value},
          {"harm", static_cast<int>(fault.harm)}};
}

Fault fault_of_state(const topo::Graph& graph, const JsonReader& state) {
  constexpr std::array kStatePlaces = {Place::kLink, Place::kSwitch, Place::kHop};
  constexpr std::array kStateHarms = {Harm::kLoss, Harm::kBlackHole, Harm::kNoCarrier};
  const auto below = [](std::size_t size) {
    return IntRange{.low = 0, .high = static_cast<long long>(size) - 1};
  };
  int place = 0;
  int harm = 0;
  int node = 0;
  Fault fault;
  state.read("place", place, below(kStatePlaces.size()));
  state.read("link", fault.link, below(2 * graph.links.size()));
  state.read("node", node, IntRange{.low = -1, .high = below(graph.nodes.size()).high});
  state.read("harm", harm, below(kStateHarms.size()));
  fault.place = at(kStatePlaces, place);
  fault.harm = at(kStateHarms, harm);
  fault.node = NodeId{node};
  if (node < 0 && fault.place != Place::kLink) state.fail("names no switch");
  return fault;
}

// Where the text lies in the file; it begins with this.
struct Extent {
  std::uint64_t begin = sizeof(Extent);
  std::uint64_t size = 0;
};

Error cut_off() {
  return {Code::kInvalidInput, std::string(kName) + ": is cut off"};
}

Result<Extent> read_extent(int fd) {
  Extent extent;
  const ssize_t count = ::pread(fd, &extent, sizeof extent, 0);
  if (count == 0) return Extent{};
  if (count < 0) return os::errno_error(kName);
  struct stat file {};
  if (::fstat(fd, &file) != 0) return os::errno_error(kName);
  const auto size = static_cast<std::uint64_t>(file.st_size);
  const bool is_inside = extent.begin <= size && extent.size <= size - extent.begin;
  if (count != sizeof extent || !is_inside) return cut_off();
  return extent;
}

}  // namespace

std::string state_text(const HealerState& state) {
  json out{{"held", json::array()}, {"relapses", json::array()}, {"missing", json::array()}};
  for (const HeldFault& held : state.damper.held) {
    json one = state_of_fault(held.fault);
    one["why"] = held.why;
    one["since"] = held.since.value;
    one["clean"] = held.clean.value;
    one["probed"] = held.is_probed;
    one["lossy"] = held.was_lossy;
    one["relapse"] = held.is_relapse;
    out["held"].push_back(std::move(one));
  }
  for (const RelapseRecord& record : state.damper.records) {
    json one = state_of_fault(record.fault);
    one["count"] = record.relapses;
    one["released"] = record.released.value;
    one["interrupted"] = record.is_interrupted;
    out["relapses"].push_back(std::move(one));
  }
  for (const Fault& hop : state.missing)
    out["missing"].push_back(state_of_fault(hop));
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<HealerState> parse_state(const topo::Graph& graph, std::string_view text) {
  if (text.empty()) return HealerState{};
  REGATTA_TRY(state, JsonReader::parse(text, kName));
  HealerState out;
  for (const JsonReader& one : state.at("held").items()) {
    HeldFault held;
    held.fault = fault_of_state(graph, one);
    one.read("why", held.why);
    one.read("since", held.since);
    one.read("clean", held.clean, kPositive);
    one.read("probed", held.is_probed);
    one.read("lossy", held.was_lossy);
    one.read("relapse", held.is_relapse);
    out.damper.held.push_back(std::move(held));
  }
  for (const JsonReader& one : state.at("relapses").items()) {
    RelapseRecord record;
    record.fault = fault_of_state(graph, one);
    one.read("count", record.relapses);
    one.read("released", record.released);
    one.read("interrupted", record.is_interrupted);
    out.damper.records.push_back(record);
  }
  for (const JsonReader& one : state.at("missing").items())
    out.missing.push_back(fault_of_state(graph, one));
  return state.finish(std::move(out));
}

Result<SharedText> SharedText::create() {
  REGATTA_TRY(fd, os::memory_file(kName));
  return SharedText(std::move(fd));
}

Result<std::string> SharedText::read() const {
  REGATTA_TRY(extent, read_extent(fd_.get()));
  std::string text(extent.size, '\0');
  const ssize_t count =
      ::pread(fd_.get(), text.data(), text.size(), static_cast<off_t>(extent.begin));
  if (count < 0) return os::errno_error(kName);
  if (count != static_cast<ssize_t>(text.size())) return cut_off();
  return text;
}

// Beside the former text; the extent, which a kill cannot cut, comes last. A former text that
// cannot be read is lost in any case.
Status SharedText::write(std::string_view text) {
  const auto read = read_extent(fd_.get());
  const Extent former = read ? *read : Extent{};
  Extent extent{.begin = sizeof(Extent), .size = text.size()};
  if (extent.begin + extent.size > former.begin && former.size > 0)
    extent.begin = former.begin + former.size;
  REGATTA_TRY_DO(os::write_all_at(fd_.get(), text, extent.begin, kName));
  const std::string_view bytes(reinterpret_cast<const char*>(&extent), sizeof extent);
  return os::write_all_at(fd_.get(), bytes, 0, kName);
}

Status StateWriter::update(HealerState state) {
  if (written_ == state) return {};
  REGATTA_TRY_DO(text_.write(state_text(state)));
  written_ = std::move(state);
  return {};
}

Result<Heartbeat> Heartbeat::create() {
  REGATTA_TRY(fd, os::memory_file(kHeartbeatName));
  Heartbeat heartbeat(std::move(fd));
  REGATTA_TRY_DO(heartbeat.write());
  return heartbeat;
}

Status Heartbeat::write() {
  const std::string_view bytes(reinterpret_cast<const char*>(&own_), sizeof own_);
  return os::write_all_at(fd_.get(), bytes, 0, kHeartbeatName);
}

Status Heartbeat::beat() {
  ++own_;
  return write();
}

Status Heartbeat::reset() {
  own_ = 0;
  return write();
}

std::uint64_t Heartbeat::beats() const {
  std::uint64_t count = 0;
  const ssize_t size = ::pread(fd_.get(), &count, sizeof count, 0);
  return size == sizeof count ? count : 0;
}

}  // namespace regatta::heal
