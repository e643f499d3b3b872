#include "regatta/network/probe/prober.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include <time.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/internal/batch.h"
#include "regatta/network/probe/internal/packet_variant.h"
#include "regatta/network/probe/internal/rdma_port.h"
#include "regatta/network/probe/internal/window_counts.h"

namespace regatta::probe {
namespace {

// Packets that leave with one stamp: the first waits for the last of them.
constexpr std::size_t kStampedTogether = 4;
constexpr std::int64_t kLatencyEvery = 33;           // windows
constexpr int kUsualMtu = 1500;                      // of a NIC that does not say
constexpr std::int64_t kLatestNs = 100'000'000'000;  // that an answer is timed

void sleep_until(std::int64_t time_ns) {
  const timespec until{.tv_sec = time_ns / 1'000'000'000LL, .tv_nsec = time_ns % 1'000'000'000LL};
  ::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr);
}

struct Sum {
  std::uint32_t count = 0;
  double least = 0;
  double most = 0;
  double total = 0;
};

}  // namespace

struct Prober::Impl {
  ServerPart part;
  ProberOptions options;
  std::int64_t period_ns = 0;
  std::int64_t phase_ns = 0;  // servers do not all wake up at once
  os::UniqueFd receiver;
  Sender sender;
  std::unique_ptr<RdmaPort> rdma;           // carries probes and answers, if it is there
  std::vector<Packet> probes;               // of a round
  std::vector<std::uint32_t> answerers;     // as ServerPart::sends: who may answer
  std::vector<std::uint32_t> senders;       // as ServerPart::answers: who may send
  std::vector<std::size_t> place_of_probe;  // as ServerPart::sends: place in `probes`
  std::vector<int> mtus;                    // as ServerPart::sends: of the NIC that it leaves from
  std::vector<Packet> due;                  // packets of a variant in a round
  WindowCounts counts{0, 0, 1};             // of probes
  // By PacketVariant, their windows are cycles; empty by RDMA.
  std::vector<WindowCounts> variant_counts;
  std::vector<Sum> latency;     // as ServerPart::sends
  std::vector<Packet> came;     // what the last look found
  std::vector<Packet> answers;  // to what of it is a probe
  std::uint32_t dropped_before = 0;
  std::int64_t last_round = -1;

  int rounds_per_cycle() const { return options.periods_per_window * diag::kWindowsPerCycle; }
  template <typename Change>
  void note(WindowCounts& its, std::int64_t round, Change&& change);
  // Counts of what a packet with this magic number belongs to; none for other packets.
  WindowCounts* counts_for(std::uint32_t magic);
  void send(std::span<const Packet> packets, std::int64_t now);
  void receive();
  void handle_answer(const Packet& packet);
  void handle_probe(const Packet& packet, std::int64_t now);
  void handle_control(const Packet& packet);
  void send_control(std::int64_t round);
  void send_round(std::int64_t round);
  void send_variant(diag::PacketVariant variant, std::int64_t round);
  void note_drops(std::int64_t round);
  template <typename Report>
  void fill_counts(const WindowCounts::Slot& one, Report& report) const;
  diag::ProbeReport report(const WindowCounts::Slot& one, std::int64_t round) const;
  Status report_windows(std::int64_t round, const std::function<Status(const std::string&)>& emit);
  std::string latencies();
};

template <typename Change>
void Prober::Impl::note(WindowCounts& its, std::int64_t round, Change&& change) {
  // Nobody makes this server keep windows that are yet to come; two clocks may differ by so much.
  const auto clocks = static_cast<std::int64_t>(2 * kClockMost / options.period);
  if (round > last_round + clocks + std::int64_t{4} * options.periods_per_window) return;
  its.note(round, change);
}

WindowCounts* Prober::Impl::counts_for(std::uint32_t magic) {
  if (magic == kProbeMagic || magic == kAnswerMagic) return &counts;
  const auto variant = variant_of(magic);
  return variant && !variant_counts.empty() ? &at(variant_counts, static_cast<int>(*variant))
                                            : nullptr;
}

void Prober::Impl::handle_answer(const Packet& packet) {
  const auto at = std::ranges::lower_bound(part.sends, packet.payload.probe);
  if (at == part.sends.end() || *at != packet.payload.probe) return;
  const auto place = static_cast<std::size_t>(at - part.sends.begin());
  WindowCounts* const its = counts_for(packet.payload.magic);
  if (packet.remote != answerers[place] || its == nullptr) return;
  note(*its, packet.payload.round, [&](WindowCounts::Slot& one) {
    if (one.answered[place] < one.sent[place]) ++one.answered[place];
  });
  if (its != &counts) return;
  // Times that somebody else wrote are not believed; without a stamp there are none.
  const std::int64_t sent = packet.payload.sent_ns;
  const std::int64_t held = packet.payload.held_ns;
  if (sent <= 0 || packet.arrived_ns < sent || packet.arrived_ns - sent > kLatestNs) return;
  if (held < 0 || held > packet.arrived_ns - sent) return;
  const double us = static_cast<double>(packet.arrived_ns - sent - held) * 1e-3;
  Sum& sum = latency[place];
  sum.least = sum.count == 0 ? us : std::min(sum.least, us);
  sum.most = std::max(sum.most, us);
  sum.total += us;
  ++sum.count;
}

void Prober::Impl::handle_probe(const Packet& packet, std::int64_t now) {
  const auto at = std::ranges::lower_bound(part.answers, packet.payload.probe);
  if (at == part.answers.end() || *at != packet.payload.probe) return;
  const auto place = static_cast<std::size_t>(at - part.answers.begin());
  WindowCounts* const its = counts_for(packet.payload.magic);
  if (packet.remote != senders[place] || its == nullptr) return;
  note(*its, packet.payload.round, [&](WindowCounts::Slot& one) { ++one.arrived[place]; });
  Packet answer = packet;
  answer.local_port = packet.remote_port;
  answer.remote_port = kProbePort;
  const auto variant = variant_of(packet.payload.magic);
  answer.payload.magic = variant ? answer_magic(*variant) : kAnswerMagic;
  // As large as the probe: nobody gets more bytes out of a prober than he sends.
  answer.size = variant ? packet.size : sizeof(Payload);
  answer.type_of_service = variant ? type_of_service(*variant) : topo::kProbeTos;
  answer.payload.held_ns = packet.arrived_ns == 0 ? 0 : now - packet.arrived_ns;
  answers.push_back(answer);
}

void Prober::Impl::handle_control(const Packet& packet) {
  note(counts, packet.payload.round, [&](WindowCounts::Slot& one) {
    ++one.control_back;
    // It waited here for a period; what came later than it was sent is the kernel's delay.
    one.worst_gap_ns = std::max(one.worst_gap_ns, packet.arrived_ns - packet.payload.sent_ns);
  });
}

void Prober::Impl::send(std::span<const Packet> packets, std::int64_t now) {
  if (rdma) {
    rdma->send(packets, now);
  } else {
    sender.send(packets);
  }
}

void Prober::Impl::receive() {
  came.clear();
  answers.clear();
  receive_all(receiver.get(), came);
  if (rdma) {
    std::erase_if(came, [](const Packet& one) { return one.payload.magic != kControlMagic; });
    rdma->receive(came);
  }
  const std::int64_t now = os::system_ns();
  for (const Packet& packet : came) {
    const std::uint32_t magic = packet.payload.magic;
    const auto variant = variant_of(magic);
    if (!variant && packet.size != sizeof(Payload)) continue;
    if (variant ? magic == answer_magic(*variant) : magic == kAnswerMagic) handle_answer(packet);
    if (variant ? magic == probe_magic(*variant) : magic == kProbeMagic) handle_probe(packet, now);
    if (magic == kControlMagic && packet.remote == INADDR_LOOPBACK) handle_control(packet);
  }
  send(answers, now);
}

void Prober::Impl::send_control(std::int64_t round) {
  const Packet packet{
      .local = INADDR_LOOPBACK,
      .remote = INADDR_LOOPBACK,
      .local_port = kFirstSourcePort,
      .remote_port = kProbePort,
      .payload = {.magic = kControlMagic, .round = round, .sent_ns = os::system_ns()}};
  for (int i = 0; i < kControlsPerWindow; ++i)
    sender.send(std::span(&packet, 1));
  note(counts, round, [&](WindowCounts::Slot& one) { one.control_sent += kControlsPerWindow; });
}

void Prober::Impl::send_round(std::int64_t round) {
  for (std::size_t first = 0; first < probes.size(); first += kStampedTogether) {
    const auto together =
        std::span(probes).subspan(first, std::min(kStampedTogether, probes.size() - first));
    const std::int64_t now = os::system_ns();
    for (Packet& packet : together) {
      packet.payload.round = round;
      packet.payload.sent_ns = now;
    }
    send(together, now);
  }
  note(counts, round, [&](WindowCounts::Slot& one) {
    for (std::uint16_t& count : one.sent)
      ++count;
  });
}

void Prober::Impl::send_variant(diag::PacketVariant variant, std::int64_t round) {
  due.clear();
  for (std::size_t place = 0; place < part.sends.size(); ++place) {
    if (!is_due(variant, part.sends[place], round, rounds_per_cycle())) continue;
    note(at(variant_counts, static_cast<int>(variant)), round,
         [&](WindowCounts::Slot& one) { ++one.sent[place]; });
    Packet packet = probes[place_of_probe[place]];
    packet.payload.magic = probe_magic(variant);
    packet.payload.round = round;
    packet.payload.sent_ns = 0;  // not timed
    packet.size = payload_bytes(variant, part.sends[place], mtus[place]);
    packet.type_of_service = type_of_service(variant);
    due.push_back(packet);
  }
  sender.send(due);
}

void Prober::Impl::note_drops(std::int64_t round) {
  const std::uint32_t all = dropped(receiver.get());
  const std::uint32_t fresh = all - dropped_before;
  dropped_before = all;
  if (fresh > 0) note(counts, round, [&](WindowCounts::Slot& one) { one.overflows += fresh; });
}

// Into a ProbeReport or VariantReport.
template <typename Report>
void Prober::Impl::fill_counts(const WindowCounts::Slot& one, Report& report) const {
  for (std::size_t i = 0; i < part.sends.size(); ++i)
    report.sent.push_back({part.sends[i], one.sent[i], one.answered[i]});
  for (std::size_t i = 0; i < part.answers.size(); ++i)
    report.arrived.push_back({part.answers[i], one.arrived[i]});
}

diag::ProbeReport Prober::Impl::report(const WindowCounts::Slot& one, std::int64_t round) const {
  diag::ProbeReport report{.server = part.server, .window = one.window};
  const std::int64_t gap = counts.worst_gap_ns(one.window, round);
  report.host = {.worst_gap = Seconds{static_cast<double>(gap) * 1e-9},
                 .control_sent = one.control_sent,
                 .control_lost = one.control_sent - std::min(one.control_sent, one.control_back),
                 .overflows = one.overflows};
  fill_counts(one, report);
  return report;
}

std::string Prober::Impl::latencies() {
  std::vector<Latency> all;
  for (std::size_t i = 0; i < latency.size(); ++i) {
    const Sum& sum = latency[i];
    if (sum.count > 0)
      all.push_back({part.sends[i], sum.count, sum.least, sum.total / sum.count, sum.most});
  }
  std::ranges::fill(latency, Sum());
  return latency_line(all);
}

// The windows and cycles whose time has come, and again those of which more is known now.
Status Prober::Impl::report_windows(std::int64_t round,
                                    const std::function<Status(const std::string&)>& emit) {
  const std::int64_t until = round - options.grace_periods + 1;
  const diag::Window before = counts.reported_until();
  if (counts.window_of(until) - 1 <= before) return {};
  note_drops(round);
  for (const WindowCounts::Slot* one : counts.consume_due(until))
    REGATTA_TRY_DO(emit(report_line(report(*one, round), options.periods_per_window)));
  for (std::size_t i = 0; i < variant_counts.size(); ++i)
    for (const WindowCounts::Slot* one : variant_counts[i].consume_due(until)) {
      diag::VariantReport its{.server = part.server,
                              .variant = static_cast<diag::PacketVariant>(i),
                              .cycle = one->window};
      fill_counts(*one, its);
      REGATTA_TRY_DO(emit(variant_line(its)));
    }
  if (counts.reported_until() / kLatencyEvery != before / kLatencyEvery) return emit(latencies());
  return {};
}

Prober::Prober(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Prober::~Prober() = default;
Prober::Prober(Prober&&) noexcept = default;
Prober& Prober::operator=(Prober&&) noexcept = default;

Result<Prober> Prober::open(const Matrix& matrix, const ServerPart& part,
                            const ProberOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->part = part;
  impl->options = options;
  impl->period_ns = static_cast<std::int64_t>(std::llround(options.period.value * 1e9));
  impl->phase_ns = impl->period_ns * (static_cast<std::int64_t>(part.server.value) * 7 % 16) / 16;
  impl->latency.resize(part.sends.size());
  impl->counts = WindowCounts(part.sends.size(), part.answers.size(), options.periods_per_window);
  REGATTA_TRY(receiver, open_socket(kProbePort));
  impl->receiver = std::move(receiver);
  std::set<std::uint16_t> ports;
  for (const std::uint32_t number : part.answers) {
    ports.insert(matrix.probes[number].flow.from_port);
    impl->senders.push_back(matrix.probes[number].flow.from);
  }
  std::map<std::uint32_t, int> mtus;  // by address
  for (const auto& [address, interface] : os::interfaces_by_address())
    if (const auto mtu = mtu_of(interface)) mtus[address] = *mtu;
  for (const std::uint32_t number : part.sends) {
    const fabric::FiveTuple& flow = matrix.probes[number].flow;
    ports.insert(flow.from_port);
    impl->answerers.push_back(flow.to);
    const auto mtu = mtus.find(flow.from);
    impl->mtus.push_back(mtu == mtus.end() ? kUsualMtu : mtu->second);
    impl->probes.push_back({.local = flow.from,
                            .remote = flow.to,
                            .local_port = flow.from_port,
                            .remote_port = flow.to_port,
                            .payload = {.magic = kProbeMagic, .probe = number}});
  }
  // Those that may share a call stand together.
  std::ranges::sort(impl->probes, {}, [](const Packet& one) {
    return std::tuple(one.local_port, one.payload.probe);
  });
  impl->place_of_probe.resize(part.sends.size());
  for (std::size_t i = 0; i < impl->probes.size(); ++i) {
    const auto place = std::ranges::lower_bound(part.sends, impl->probes[i].payload.probe);
    at(impl->place_of_probe, place - part.sends.begin()) = i;
  }
  if (options.transport == Transport::kUdp)
    impl->variant_counts.assign(
        diag::kPacketVariants,
        WindowCounts(part.sends.size(), part.answers.size(), impl->rounds_per_cycle()));
  if (options.transport == Transport::kRdma) {
    REGATTA_TRY(rdma, RdmaPort::open(own_addresses(matrix, part), ports));
    impl->rdma = std::move(rdma);
    ports.clear();
  }
  ports.insert(kFirstSourcePort);  // of controls
  REGATTA_TRY(sender, Sender::open(ports));
  impl->sender = std::move(sender);
  return Prober(std::move(impl));
}

Status Prober::run(const std::atomic<bool>& stop,
                   const std::function<Status(const std::string&)>& emit) {
  Impl& impl = *impl_;
  std::int64_t round = (os::system_ns() - impl.phase_ns) / impl.period_ns;
  impl.last_round = round;
  impl.counts.begin_after(round + impl.options.periods_per_window);
  for (WindowCounts& its : impl.variant_counts)
    its.begin_after(round);
  std::int64_t controlled = -1;  // window
  while (!stop) {
    ++round;
    sleep_until(round * impl.period_ns + impl.phase_ns);
    const std::int64_t now = os::system_ns();
    // Rounds that were slept over are left out; the last of them is late.
    const std::int64_t late = now - (round * impl.period_ns + impl.phase_ns);
    round += late / impl.period_ns;
    impl.last_round = round;
    impl.note(impl.counts, round, [&](WindowCounts::Slot& one) {
      one.worst_gap_ns = std::max(one.worst_gap_ns, late);
    });
    impl.receive();
    impl.send_round(round);
    for (std::size_t i = 0; i < impl.variant_counts.size(); ++i)
      impl.send_variant(static_cast<diag::PacketVariant>(i), round);
    if (impl.counts.window_of(round) != controlled) impl.send_control(round);
    controlled = impl.counts.window_of(round);
    REGATTA_TRY_DO(impl.report_windows(round, emit));
  }
  return {};
}

}  // namespace regatta::probe
