#include "regatta/network/link_rates/switch_stream.h"

#include <limits>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "regatta/base/core/text.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kProblemsMost = 32;

}  // namespace

SwitchStream::SwitchStream(const topo::Graph& graph, std::string file)
    : names_(graph), file_(std::move(file)), is_down_(2 * graph.links.size()) {}

void SwitchStream::leave_out(const std::string& kind, const Error& why) {
  ++left_out_;
  if (told_.size() >= kProblemsMost || !told_.insert(kind).second) return;
  problems_.push_back(why.message);
  if (told_.size() == kProblemsMost)
    problems_.push_back(file_ + ": has more such lines; they are left out and counted");
}

void SwitchStream::add(std::string_view text, Seconds now) {
  if (number_ < std::numeric_limits<int>::max()) ++number_;
  const auto line = parse_switch_line(text, file_, number_);
  const std::string place = fmt::format("{}:{}: ", file_, number_);
  if (line && std::holds_alternative<std::monostate>(*line)) return;
  ++lines_;
  if (!line) return leave_out(line.error().message.substr(place.size()), line.error());
  Status added;
  if (const auto* const counters = std::get_if<SwitchPortCounters>(&*line))
    added = add(*counters, now);
  else
    added = add(std::get<SwitchNeighbor>(*line));
  if (!added) leave_out(added.error().message, {added.error().code, place + added.error().message});
}

Status SwitchStream::add(const SwitchPortCounters& counters, Seconds now) {
  REGATTA_TRY(port, names_.find(counters.device, counters.port));
  news_.readings.push_back({.port = port,
                            .at = now,
                            .in_packets = counters.in.packets,
                            .in_errors = counters.in.errors,
                            .in_drops = counters.in.drops,
                            .out_errors = counters.out.errors,
                            .out_drops = counters.out.drops});
  if (counters.is_up) set_up(port, *counters.is_up);
  return {};
}

void SwitchStream::set_up(std::uint32_t port, bool is_up) {
  const std::uint32_t other = port ^ 1U;
  const bool was_down = is_down_[port] || is_down_[other];
  is_down_[port] = !is_up;
  const bool is_down = is_down_[port] || is_down_[other];
  if (is_down != was_down)
    news_.carriers.push_back({.link = LinkId{static_cast<int>(port / 2)},
                              .up = !is_down,
                              .source = diag::CarrierSource::kSwitches});
}

Status SwitchStream::add(const SwitchNeighbor& neighbor) {
  REGATTA_TRY(port, names_.find(neighbor.device, neighbor.port));
  const auto heard = names_.find(neighbor.neighbor, neighbor.neighbor_port);
  if (!heard)
    return Error{Code::kInvalidInput, fmt::format("neighbor of {} at {}: {}", neighbor.device,
                                                  neighbor.port, heard.error().message)};
  news_.heard.push_back({.port = port, .heard = *heard});
  return {};
}

}  // namespace regatta::link_rates
