#include "regatta/network/probe/evidence.h"

#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::probe {
namespace {

template <typename T>
std::optional<T> number(std::string_view text, T least = 0,
                        T most = std::numeric_limits<T>::max()) {
  const auto value = parse_number<T>(text);
  if (!value || *value < least || *value > most) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> hex_address(std::string_view text) {
  return text.size() == 8 ? parse_number<std::uint32_t>(text, 16) : std::nullopt;
}

std::optional<TraceHop> parse_hop(const std::string& word) {
  const std::vector<std::string> parts = split(word, ':');
  if (parts.size() != 3) return std::nullopt;
  const auto sent = number<std::uint16_t>(parts[0], 0, kTriesMost);
  const auto answered = number<std::uint16_t>(parts[1], 0, sent.value_or(0));
  const auto router = hex_address(parts[2]);
  if (!sent || !answered || !router) return std::nullopt;
  return TraceHop{*sent, *answered, *router};
}

std::optional<FlowCount> parse_flow(const std::string& word) {
  const std::vector<std::string> parts = split(word, ':');
  if (parts.size() != 6) return std::nullopt;
  const auto from = hex_address(parts[0]);
  const auto from_port = number<std::uint16_t>(parts[1]);
  const auto to = hex_address(parts[2]);
  const auto to_port = number<std::uint16_t>(parts[3]);
  const auto segments = number<std::uint32_t>(parts[4]);
  const auto again = number<std::uint32_t>(parts[5], 0, segments.value_or(0));
  if (!from || !from_port || !to || !to_port || !segments || !again) return std::nullopt;
  return FlowCount{
      .flow = {*from, *to, *from_port, *to_port, kTcp}, .segments = *segments, .again = *again};
}

Result<Evidence> parse_trace(const std::vector<std::string>& words, const Error& wrong) {
  if (words.size() < 4 || words.size() > 3 + kHopsMost) return wrong;
  const auto window = number<diag::Window>(words[1]);
  const auto path = number<std::uint32_t>(words[2]);
  if (!window || !path) return wrong;
  Trace trace{.window = *window, .path = *path, .hops = {}};
  for (std::size_t i = 3; i < words.size(); ++i) {
    const auto hop = parse_hop(words[i]);
    if (!hop) return wrong;
    trace.hops.push_back(*hop);
  }
  return Evidence(std::move(trace));
}

Result<Evidence> parse_flows(const std::vector<std::string>& words, const Error& wrong) {
  if (words.size() < 2 || words.size() > 2 + kFlowsMost) return wrong;
  const auto window = number<diag::Window>(words[1]);
  if (!window) return wrong;
  FlowCounts counts{.window = *window, .flows = {}};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto flow = parse_flow(words[i]);
    if (!flow) return wrong;
    counts.flows.push_back(*flow);
  }
  return Evidence(std::move(counts));
}

Result<Evidence> parse_addresses(const std::vector<std::string>& words, const Error& wrong) {
  InterfaceAddresses addresses;
  std::size_t count = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::vector<std::uint32_t>& its = addresses.interfaces.emplace_back();
    for (const std::string& part : split(words[i], ':')) {
      const auto address = hex_address(part);
      if (!address || ++count > kAddressesMost) return wrong;
      its.push_back(*address);
    }
  }
  return Evidence(std::move(addresses));
}

struct Writer {
  std::string operator()(const Trace& trace) const {
    std::string line = fmt::format("t {} {}", trace.window, trace.path);
    for (const TraceHop& hop : trace.hops)
      fmt::format_to(std::back_inserter(line), " {}:{}:{:08x}", hop.sent, hop.answered, hop.router);
    return line + "\n";
  }
  std::string operator()(const FlowCounts& counts) const {
    std::string line = fmt::format("f {}", counts.window);
    for (const FlowCount& one : counts.flows)
      fmt::format_to(std::back_inserter(line), " {:08x}:{}:{:08x}:{}:{}:{}", one.flow.from,
                     one.flow.from_port, one.flow.to, one.flow.to_port, one.segments, one.again);
    return line + "\n";
  }
  std::string operator()(const NicCarrier& nic) const {
    return fmt::format("n {:08x} {}\n", nic.address, nic.up ? "up" : "down");
  }
  std::string operator()(const InterfaceAddresses& addresses) const {
    std::string line = "i";
    for (const auto& interface : addresses.interfaces)
      for (std::size_t i = 0; i < interface.size(); ++i)
        fmt::format_to(std::back_inserter(line), "{}{:08x}", i == 0 ? ' ' : ':', interface[i]);
    return line + "\n";
  }
  std::string operator()(const TraceOrder& order) const {
    return fmt::format("trace {} {} {}\n", order.path, order.hops, order.tries);
  }
  std::string operator()(const FlowsOrder&) const { return "flows\n"; }
  std::string operator()(const CarriersOrder&) const { return "carriers\n"; }
};

}  // namespace

std::string order_line(const Order& order) {
  return std::visit(Writer(), order);
}

std::string evidence_line(const Evidence& evidence) {
  return std::visit(Writer(), evidence);
}

bool is_evidence(std::string_view line) {
  return line.starts_with("t ") || line.starts_with("f ") || line.starts_with("n ") ||
         line.starts_with("i ") || line == "i";
}

Result<Order> parse_order(std::string_view line) {
  const Error wrong{Code::kInvalidInput, "not an order to a prober: " + printable(line, 60)};
  const std::vector<std::string> words = split(line, ' ');
  if (words == std::vector<std::string>{"flows"}) return Order(FlowsOrder());
  if (words == std::vector<std::string>{"carriers"}) return Order(CarriersOrder());
  if (words.size() != 4 || words[0] != "trace") return wrong;
  const auto path = number<std::uint32_t>(words[1]);
  const auto hops = number<int>(words[2], 1, kHopsMost);
  const auto tries = number<int>(words[3], 1, kTriesMost);
  if (!path || !hops || !tries) return wrong;
  return Order(TraceOrder{.path = *path, .hops = *hops, .tries = *tries});
}

Result<Evidence> parse_evidence(std::string_view line) {
  const Error wrong{Code::kInvalidInput, "not a prober's line: " + printable(line, 60)};
  if (!is_evidence(line)) return wrong;
  const std::vector<std::string> words = split(trim(line), ' ');
  if (words[0] == "t") return parse_trace(words, wrong);
  if (words[0] == "f") return parse_flows(words, wrong);
  if (words[0] == "i") return parse_addresses(words, wrong);
  if (words.size() != 3 || (words[2] != "up" && words[2] != "down")) return wrong;
  const auto address = hex_address(words[1]);
  if (!address) return wrong;
  return Evidence(NicCarrier{.address = *address, .up = words[2] == "up"});
}

}  // namespace regatta::probe
