#include "regatta/network/probe/prober.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include <time.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/internal/batch.h"
#include "regatta/network/probe/internal/rdma_port.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kSlots = 128;  // windows that answers may still come for
// Packets that leave with one stamp: the first waits for the last of them.
constexpr std::size_t kStampedTogether = 4;
constexpr std::int64_t kLatencyEvery = 33;           // windows
constexpr std::int64_t kLatestNs = 100'000'000'000;  // that an answer is timed

void sleep_until(std::int64_t time_ns) {
  const timespec until{.tv_sec = time_ns / 1'000'000'000LL, .tv_nsec = time_ns % 1'000'000'000LL};
  ::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr);
}

// Counts of a window.
struct ProbeSlot {
  std::int64_t window = -1;
  std::int64_t worst_gap_ns = 0;
  std::uint32_t control_sent = 0;
  std::uint32_t control_back = 0;
  std::uint32_t overflows = 0;
  std::vector<std::uint16_t> sent;      // as ServerPart::sends
  std::vector<std::uint16_t> answered;  // the same
  std::vector<std::uint16_t> arrived;   // as ServerPart::answers
  bool is_told = false;
};

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
  std::unique_ptr<RdmaPort> rdma;        // carries probes and answers, if it is there
  std::vector<Packet> probes;            // of a round
  std::vector<std::uint32_t> answerers;  // as ServerPart::sends: who may answer
  std::vector<std::uint32_t> senders;    // as ServerPart::answers: who may send
  std::vector<ProbeSlot> slots{kSlots};
  std::vector<Sum> latency;     // as ServerPart::sends
  std::vector<Packet> came;     // what the last look found
  std::vector<Packet> answers;  // to what of it is a probe
  std::uint32_t dropped_before = 0;
  std::int64_t last_round = -1;
  std::int64_t told_until = -1;     // window
  std::vector<std::int64_t> again;  // windows of which more is known than was told

  // Slot of the window, or none when it is too old.
  ProbeSlot* slot(std::int64_t window);
  std::int64_t window_of(std::int64_t round) const { return round / options.periods_per_window; }
  template <typename Change>
  void note(std::int64_t round, Change&& change);
  void send(std::span<const Packet> packets, std::int64_t now);
  void receive();
  void handle_answer(const Packet& packet);
  void handle_probe(const Packet& packet, std::int64_t now);
  void handle_control(const Packet& packet);
  void send_control(std::int64_t round);
  void send_round(std::int64_t round);
  void note_drops(std::int64_t round);
  diag::ProbeReport report(const ProbeSlot& one, std::int64_t newest) const;
  Status report_windows(std::int64_t round, const std::function<Status(const std::string&)>& emit);
  std::string latencies();
};

ProbeSlot* Prober::Impl::slot(std::int64_t window) {
  if (window < 0) return nullptr;
  ProbeSlot& one = slots[static_cast<std::size_t>(window) % kSlots];
  if (one.window > window) return nullptr;
  if (one.window < window) {
    one.window = window;
    one.worst_gap_ns = 0;
    one.control_sent = one.control_back = one.overflows = 0;
    one.is_told = false;
    one.sent.assign(part.sends.size(), 0);
    one.answered.assign(part.sends.size(), 0);
    one.arrived.assign(part.answers.size(), 0);
  }
  return &one;
}

template <typename Change>
void Prober::Impl::note(std::int64_t round, Change&& change) {
  // Nobody makes this server keep windows that are yet to come; two clocks may differ by so much.
  const auto clocks = static_cast<std::int64_t>(2 * kClockMost / options.period);
  if (round > last_round + clocks + std::int64_t{4} * options.periods_per_window) return;
  ProbeSlot* const one = slot(window_of(round));
  if (one == nullptr) return;
  change(*one);
  if (one->is_told && (again.empty() || again.back() != one->window)) again.push_back(one->window);
}

void Prober::Impl::handle_answer(const Packet& packet) {
  const auto at = std::ranges::lower_bound(part.sends, packet.payload.probe);
  if (at == part.sends.end() || *at != packet.payload.probe) return;
  const auto place = static_cast<std::size_t>(at - part.sends.begin());
  if (packet.remote != answerers[place]) return;
  note(packet.payload.round, [&](ProbeSlot& one) {
    if (one.answered[place] < one.sent[place]) ++one.answered[place];
  });
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
  if (packet.remote != senders[place]) return;
  note(packet.payload.round, [&](ProbeSlot& one) { ++one.arrived[place]; });
  Packet answer = packet;
  answer.local_port = packet.remote_port;
  answer.remote_port = kProbePort;
  answer.payload.magic = kAnswerMagic;
  answer.payload.held_ns = packet.arrived_ns == 0 ? 0 : now - packet.arrived_ns;
  answers.push_back(answer);
}

void Prober::Impl::handle_control(const Packet& packet) {
  note(packet.payload.round, [&](ProbeSlot& one) {
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
    if (packet.payload.magic == kAnswerMagic) handle_answer(packet);
    if (packet.payload.magic == kProbeMagic) handle_probe(packet, now);
    if (packet.payload.magic == kControlMagic && packet.remote == INADDR_LOOPBACK)
      handle_control(packet);
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
  note(round, [&](ProbeSlot& one) { one.control_sent += kControlsPerWindow; });
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
  note(round, [&](ProbeSlot& one) {
    for (std::uint16_t& count : one.sent)
      ++count;
  });
}

void Prober::Impl::note_drops(std::int64_t round) {
  const std::uint32_t all = dropped(receiver.get());
  const std::uint32_t fresh = all - dropped_before;
  dropped_before = all;
  if (fresh > 0) note(round, [&](ProbeSlot& one) { one.overflows += fresh; });
}

diag::ProbeReport Prober::Impl::report(const ProbeSlot& one, std::int64_t newest) const {
  diag::ProbeReport report{.server = part.server, .window = one.window};
  std::int64_t gap = 0;
  for (std::int64_t window = one.window; window <= newest; ++window) {
    const ProbeSlot& later = slots[static_cast<std::size_t>(window) % kSlots];
    if (later.window == window) gap = std::max(gap, later.worst_gap_ns);
  }
  report.host = {.worst_gap = Seconds{static_cast<double>(gap) * 1e-9},
                 .control_sent = one.control_sent,
                 .control_lost = one.control_sent - std::min(one.control_sent, one.control_back),
                 .overflows = one.overflows};
  for (std::size_t i = 0; i < part.sends.size(); ++i)
    report.sent.push_back({part.sends[i], one.sent[i], one.answered[i]});
  for (std::size_t i = 0; i < part.answers.size(); ++i)
    report.arrived.push_back({part.answers[i], one.arrived[i]});
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

// The windows whose time has come, and again those of which more is known now.
Status Prober::Impl::report_windows(std::int64_t round,
                                    const std::function<Status(const std::string&)>& emit) {
  const std::int64_t last = window_of(round - options.grace_periods + 1) - 1;
  if (last <= told_until) return {};
  note_drops(round);
  const std::int64_t newest = window_of(round);
  std::ranges::sort(again);
  again.erase(std::unique(again.begin(), again.end()), again.end());
  for (std::int64_t window = std::max(told_until + 1, last - 64); window <= last; ++window)
    again.push_back(window);
  for (const std::int64_t window : again) {
    ProbeSlot* const one = slot(window);
    if (one == nullptr) continue;
    one->is_told = true;
    REGATTA_TRY_DO(emit(report_line(report(*one, newest), options.periods_per_window)));
  }
  again.clear();
  const bool tells_latency = last / kLatencyEvery != told_until / kLatencyEvery;
  told_until = last;
  if (tells_latency) return emit(latencies());
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
  REGATTA_TRY(receiver, open_socket(kProbePort));
  impl->receiver = std::move(receiver);
  std::set<std::uint16_t> ports;
  for (const std::uint32_t number : part.answers) {
    ports.insert(matrix.probes[number].flow.from_port);
    impl->senders.push_back(matrix.probes[number].flow.from);
  }
  for (const std::uint32_t number : part.sends) {
    const fabric::FiveTuple& flow = matrix.probes[number].flow;
    ports.insert(flow.from_port);
    impl->answerers.push_back(flow.to);
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
  impl.told_until = impl.window_of(round + impl.options.periods_per_window);
  std::int64_t controlled = -1;  // window
  while (!stop) {
    ++round;
    sleep_until(round * impl.period_ns + impl.phase_ns);
    const std::int64_t now = os::system_ns();
    // Rounds that were slept over are left out; the last of them is late.
    const std::int64_t late = now - (round * impl.period_ns + impl.phase_ns);
    round += late / impl.period_ns;
    impl.last_round = round;
    impl.note(round, [&](ProbeSlot& one) { one.worst_gap_ns = std::max(one.worst_gap_ns, late); });
    impl.receive();
    impl.send_round(round);
    if (impl.window_of(round) != controlled) impl.send_control(round);
    controlled = impl.window_of(round);
    REGATTA_TRY_DO(impl.report_windows(round, emit));
  }
  return {};
}

}  // namespace regatta::probe
