#include "regatta/network/link_rates/internal/train_messages.h"

#include <cmath>
#include <optional>
#include <type_traits>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::link_rates {
namespace {

constexpr int kTimeToLiveMost = 64;
constexpr double kRateMost = 1e15;

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{:.0f}", rate.value);
}

// Reads the words of a line one by one, and remembers whether all were right.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : words_(split(line, ' ')) {}

  std::string word() { return next_ < words_.size() ? words_[next_++] : fail(); }
  template <typename Number>
  Number number(Number least, Number most, int base = 10) {
    const auto value = parse_number<Number>(word(), base);
    if (value && *value >= least && *value <= most) return *value;
    fail();
    return least;
  }
  std::uint32_t address() { return number<std::uint32_t>(1, 0xffffffffU, 16); }
  std::uint64_t train() { return number<std::uint64_t>(0, ~std::uint64_t{0}, 16); }
  BytesPerSecond rate() {
    const auto value = number<std::uint64_t>(0, static_cast<std::uint64_t>(kRateMost));
    return {static_cast<double>(value)};
  }
  std::string rest() {
    std::vector<std::string> left(words_.begin() + static_cast<std::ptrdiff_t>(next_),
                                  words_.end());
    next_ = words_.size();
    return join(left, " ");
  }
  bool has_more() const { return next_ < words_.size(); }
  bool is_complete() const { return is_right_ && !has_more(); }

 private:
  std::string fail() {
    is_right_ = false;
    return {};
  }
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  bool is_right_ = true;
};

Error malformed(std::string_view line) {
  return {Code::kInvalidInput,
          fmt::format("'{}' is no line of this version; start the same version of Regatta at both "
                      "ends",
                      printable(line, 60))};
}

void read_flow(WordReader& words, fabric::FiveTuple& flow) {
  flow.from = words.address();
  flow.from_port = words.number<std::uint16_t>(1, 65535);
  flow.to = words.address();
  flow.to_port = words.number<std::uint16_t>(1, 65535);
}

TrainOrder read_train(WordReader& words, bool is_sender) {
  TrainOrder order{.is_sender = is_sender, .train = words.train(), .flow = {}, .shape = {}};
  read_flow(words, order.flow);
  order.shape.packets = words.number<int>(1, kTrainPacketsMost);
  order.shape.packet_bytes = words.number<int>(kMarkerBytes, kTrainPacketBytesMost);
  order.shape.time_to_live = words.number<int>(0, kTimeToLiveMost);
  return order;
}

LoadReport read_load(WordReader& words) {
  LoadReport report;
  while (words.has_more() && report.nics.size() < kNicsMost) {
    NicBytes nic{.address = words.address()};
    nic.sent = words.number<std::uint64_t>(0, ~std::uint64_t{0});
    nic.received = words.number<std::uint64_t>(0, ~std::uint64_t{0});
    report.nics.push_back(nic);
  }
  return report;
}

}  // namespace

std::string order_line(const AgentOrder& order) {
  if (const auto* const load = std::get_if<LoadOrder>(&order)) {
    std::string line = "load";
    for (const std::uint32_t address : load->addresses)
      line += fmt::format(" {:08x}", address);
    return line + "\n";
  }
  if (const auto* const path = std::get_if<PathOrder>(&order))
    return fmt::format("trace {} {:08x} {} {:08x} {} {}\n", path->number, path->flow.from,
                       path->flow.from_port, path->flow.to, path->flow.to_port, path->routers);
  const auto& train = std::get<TrainOrder>(order);
  return fmt::format("{} {:x} {:08x} {} {:08x} {} {} {} {}\n", train.is_sender ? "send" : "expect",
                     train.train, train.flow.from, train.flow.from_port, train.flow.to,
                     train.flow.to_port, train.shape.packets, train.shape.packet_bytes,
                     train.shape.time_to_live);
}

Result<AgentOrder> parse_agent_order(std::string_view line) {
  WordReader words(line);
  const std::string kind = words.word();
  AgentOrder order;
  if (kind == "send" || kind == "expect") {
    order = read_train(words, kind == "send");
  } else if (kind == "load") {
    LoadOrder load;
    while (words.has_more() && load.addresses.size() < kNicsMost)
      load.addresses.push_back(words.address());
    order = load;
  } else if (kind == "trace") {
    PathOrder path{.number = words.number<std::uint32_t>(0, ~std::uint32_t{0}), .flow = {}};
    read_flow(words, path.flow);
    path.routers = words.number<int>(1, static_cast<int>(kTracedRoutersMost));
    order = path;
  } else {
    return malformed(line);
  }
  if (!words.is_complete()) return malformed(line);
  return order;
}

std::string report_line(const AgentReport& report) {
  return std::visit(
      [](const auto& one) {
        using Kind = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Kind, TrainAwaited>) {
          return fmt::format("awaits {:x}\n", one.train);
        } else if constexpr (std::is_same_v<Kind, TrainSent>) {
          return fmt::format("sent {:x} {}\n", one.train, rate_text(one.offered));
        } else if constexpr (std::is_same_v<Kind, TrainReceived>) {
          return fmt::format("arrived {:x} {} {}\n", one.train, one.arrived, rate_text(one.rate));
        } else if constexpr (std::is_same_v<Kind, TrainFailed>) {
          return fmt::format("failed {:x} {}\n", one.train, printable(one.why, 200));
        } else if constexpr (std::is_same_v<Kind, PathTraced>) {
          std::string line = fmt::format("traced {}", one.number);
          for (const std::uint32_t router : one.routers)
            line += fmt::format(" {:08x}", router);
          return line + "\n";
        } else {
          std::string line = "load";
          for (const NicBytes& nic : one.nics)
            line += fmt::format(" {:08x} {} {}", nic.address, nic.sent, nic.received);
          return line + "\n";
        }
      },
      report);
}

Result<AgentReport> parse_agent_report(std::string_view line) {
  WordReader words(line);
  const std::string kind = words.word();
  AgentReport report;
  if (kind == "awaits") {
    report = TrainAwaited{.train = words.train()};
  } else if (kind == "sent") {
    TrainSent sent{.train = words.train()};
    sent.offered = words.rate();
    report = sent;
  } else if (kind == "arrived") {
    TrainReceived received{.train = words.train()};
    received.arrived = words.number<int>(0, kTrainPacketsMost);
    received.rate = words.rate();
    report = received;
  } else if (kind == "failed") {
    TrainFailed failed{.train = words.train(), .why = {}};
    failed.why = printable(words.rest(), 200);
    report = failed;
  } else if (kind == "load") {
    report = read_load(words);
  } else if (kind == "traced") {
    PathTraced traced{.number = words.number<std::uint32_t>(0, ~std::uint32_t{0}), .routers = {}};
    while (words.has_more() && traced.routers.size() < kTracedRoutersMost)
      traced.routers.push_back(words.number<std::uint32_t>(0, ~std::uint32_t{0}, 16));
    report = traced;
  } else {
    return malformed(line);
  }
  if (!words.is_complete()) return malformed(line);
  return report;
}

}  // namespace regatta::link_rates
