// fuzz/link_fuzz.cc: any bytes on the connections of a link between two ranks, while this one sends
// and receives. The stream is mostly of packets, with right checksums, so that what is in them is
// reached.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/engine/message_matcher.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"

namespace {

using namespace regatta;        // NOLINT(google-build-using-namespace): a program of its own
using namespace regatta::comm;  // NOLINT(google-build-using-namespace): the same

constexpr int kPeer = 1;
constexpr std::array<std::size_t, 6> kSizes = {0, 1, 100, 8000, 60000, 280000};

// Passes on what a World passes on.
class Sink final : public LinkSink {
 public:
  explicit Sink(MessageMatcher& matcher) : matcher_(matcher) {}
  std::byte* place(int peer, const PacketHeader& header) override {
    return has_failed ? nullptr : matcher_.place(peer, header, {});
  }
  void arrived(int peer, const PacketHeader& header, const std::byte* payload) override {
    if (header.kind != PacketKind::kData) REGATTA_CHECK(header.payload_bytes <= kTextBytesMax);
    if (!has_failed) matcher_.arrived(peer, header, payload, {});
  }
  void sent(int, OutMessage& message, std::size_t) override { matcher_.sent(message, {}); }
  void lost(int, std::string_view) override { is_lost = true; }

  bool has_failed = false;
  bool is_lost = false;

 private:
  MessageMatcher& matcher_;
};

struct Ends {
  os::UniqueFd near;
  os::UniqueFd far;
};
Ends connect_pair() {
  std::array<int, 2> fds{};
  REGATTA_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
  return {os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
}

// A rank with messages of every size on their way in and out, and the link to its peer.
class Speaker {
 public:
  Speaker() : names_{"rank 0", "rank 1"}, matcher_(links_, names_), sink_(matcher_) {
    TcpConnections connections;
    for (os::UniqueFd* near :
         {&connections.control, &connections.out.emplace_back(), &connections.in.emplace_back()}) {
      Ends ends = connect_pair();
      *near = std::move(ends.near);
      far_.push_back(std::move(ends.far));
    }
    links_.push_back(nullptr);
    links_.push_back(std::make_unique<TcpLink>(kPeer, std::move(connections), sink_));
    operation_.group = std::make_shared<CommunicatorState>();
    operation_.group->id = 1;
    operation_.group->members = {0, kPeer};
    operation_.handle = std::make_shared<Handle::State>();
    operation_.name = "fuzz";
    operation_.schedule.reduction = {DataType::kF32, ReduceOp::kSum, 1};
    std::uint32_t tag = 0;
    for (const StepKind kind : {StepKind::kReceive, StepKind::kReceiveReduce, StepKind::kSend})
      for (const std::size_t size : kSizes) {
        const std::size_t bytes = kind == StepKind::kReceiveReduce ? size / 4 * 4 : size;
        std::byte* const memory = operation_.schedule.scratch(bytes);
        std::fill_n(memory, bytes, std::byte{1});
        operation_.schedule.add({.kind = kind,
                                 .peer = kPeer,
                                 .tag = tag++,
                                 .dst = memory,
                                 .src = memory,
                                 .bytes = bytes});
      }
    operation_.prepare();
  }

  // Begins the next of the messages.
  void begin_next() {
    if (begun_ == operation_.transfers.size() || sink_.has_failed) return;
    MessageTransfer& transfer = operation_.transfers[begun_++];
    if (operation_.schedule.steps()[transfer.step].kind == StepKind::kSend)
      matcher_.post_send(transfer);
    else
      matcher_.post_receive(transfer);
    note_errors();
  }

  void receive(std::size_t connection, const std::vector<std::byte>& bytes) {
    std::size_t done = 0;
    while (done < bytes.size() && !sink_.is_lost) {
      const ssize_t sent = send(far_[connection].get(), bytes.data() + done, bytes.size() - done,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) done += static_cast<std::size_t>(sent);
      go_on();
      if (sent <= 0) return;
    }
  }

  void close(std::size_t connection) {
    shutdown(far_[connection].get(), SHUT_WR);
    go_on();
  }

  bool is_over() const { return sink_.is_lost; }

 private:
  void go_on() {
    std::array<std::byte, 4096> away{};
    for (std::size_t i = 0; i < far_.size(); ++i) {
      while (recv(far_[i].get(), away.data(), away.size(), MSG_DONTWAIT) > 0) {
      }
      links_[kPeer]->on_event(static_cast<int>(i), EPOLLIN | EPOLLOUT);
    }
    links_[kPeer]->progress();
    for (const MessageTransfer* transfer : matcher_.consume_ended())
      REGATTA_CHECK(transfer->received == transfer->bytes() || transfer->out.written > 0 ||
                    transfer->bytes() == 0 || transfer->received == 0);
    note_errors();
  }

  // As World::fail().
  void note_errors() {
    if (!matcher_.error() || sink_.has_failed) return;
    sink_.has_failed = true;
    links_[kPeer]->abandon();
    matcher_.clear();
  }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  MessageMatcher matcher_;
  Sink sink_;
  Operation operation_;
  std::size_t begun_ = 0;
  std::vector<os::UniqueFd> far_;
};

std::vector<std::byte> take_packet(FuzzedDataProvider& data) {
  PacketHeader header;
  header.kind = static_cast<PacketKind>(data.ConsumeIntegralInRange<int>(0, 12));
  header.call = data.ConsumeBool() ? fingerprint(0, 0) : data.ConsumeIntegral<std::uint32_t>();
  header.key = {data.ConsumeIntegralInRange<std::uint64_t>(0, 2),
                data.ConsumeBool() ? 0 : data.ConsumeIntegral<std::uint32_t>(),
                data.ConsumeIntegralInRange<std::uint32_t>(0, 20)};
  const auto draw = [&](std::uint64_t usual) {
    return data.ConsumeIntegralInRange<int>(0, 9) > 0 ? usual
                                                      : data.ConsumeIntegral<std::uint64_t>();
  };
  header.message_bytes = draw(data.PickValueInArray(kSizes));
  header.offset =
      draw(data.ConsumeBool() ? 0 : data.ConsumeIntegralInRange<std::uint32_t>(0, 1 << 19));
  header.payload_bytes = static_cast<std::uint32_t>(
      draw(data.ConsumeBool() ? header.message_bytes
                              : data.ConsumeIntegralInRange<std::uint32_t>(0, 1 << 16)));
  std::vector<std::byte> bytes(kHeaderBytes);
  encode_header(header, HeaderBytes(bytes.data(), kHeaderBytes));
  const bool is_whole = data.ConsumeIntegralInRange<int>(0, 9) > 0;
  if (is_whole) bytes.resize(kHeaderBytes + std::min<std::size_t>(header.payload_bytes, 1 << 17));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  FuzzedDataProvider data(input, size);
  Speaker rank;
  while (data.remaining_bytes() > 0 && !rank.is_over()) {
    const auto connection = data.ConsumeIntegralInRange<std::size_t>(0, 2);
    switch (data.ConsumeIntegralInRange<int>(0, 9)) {
      case 0:
        rank.close(connection);
        break;
      case 1: {
        const auto raw =
            data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(1, 64));
        std::vector<std::byte> bytes;
        for (const std::uint8_t byte : raw)
          bytes.push_back(static_cast<std::byte>(byte));
        rank.receive(connection, bytes);
        break;
      }
      case 2:
      case 3:
      case 4:
        rank.begin_next();
        break;
      default:
        rank.receive(connection, take_packet(data));
    }
  }
  return 0;
}
