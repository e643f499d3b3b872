#include "experimental/remote/internal/rendezvous.h"

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "experimental/remote/internal/packet_channel.h"
#include "experimental/remote/internal/rdma_packet_port.h"
#include "experimental/remote/internal/socket.h"
#include "experimental/remote/internal/tls_channel.h"
#include "regatta/base/os/socket.h"

namespace regatta::remote {
namespace {

constexpr std::chrono::milliseconds kGreetingPatience{5000};
constexpr std::string_view kJoined = "joined";
constexpr std::string_view kTcp = "tcp ";
constexpr std::string_view kRdma = "rdma ";

int digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// A port on the device of this end of the connection.
Result<std::unique_ptr<RdmaPacketPort>> open_end(int fd, const std::string& rdma_address) {
  return open_rdma(rdma_address.empty() ? os::local_endpoint(fd).host : rdma_address);
}

Status connect(RdmaPacketPort& port, const std::string& theirs) {
  REGATTA_TRY(card, parse_queue_card(theirs));
  return port.connect(card);
}

// A channel over a connected port that has passed its handshake.
Result<std::unique_ptr<ByteChannel>> handshake(std::unique_ptr<RdmaPacketPort> port,
                                               os::UniqueFd fd, bool begins) {
  const std::string device = port->device();
  auto channel = std::make_unique<PacketChannel>(std::move(port), std::move(fd));
  if (!channel->handshake(begins, kGreetingPatience))
    return Error{
        Code::kUnavailable,
        device + ": its packets do not come through; see to it that UDP port 4791 is open"};
  return std::unique_ptr<ByteChannel>(std::move(channel));
}

struct Attempt {
  HostChannel joined;
  std::string why_tcp;  // the connection is lost; another one by TCP may be tried
};

std::string join_request(const ConnectOptions& options, std::uint64_t number) {
  return R"({"request":"join","connection":)" + std::to_string(number) + R"(,"ticket":")" +
         options.ticket + R"(","key":")" + options.key + '"';
}

// First with the server, which passes the connection on, then with the host process: the server
// sees nothing of what the program sends.
Result<Attempt> attempt_encrypted(const ConnectOptions& options, std::uint64_t number) {
  REGATTA_TRY(server, connect_to_server(options));
  static_cast<void>(send_text(*server, join_request(options, number) + "}"));
  REGATTA_TRY(passed, receive_text(*server));
  if (passed != kPassedOn)
    return Error{Code::kUnavailable, options.server + ": answers what was not asked"};
  REGATTA_TRY(host, connect_tls(server->release(), secret_of_program(options.key), kBeginTimeout,
                                TlsReading::kAhead));
  REGATTA_TRY(text, receive_text(*host));
  REGATTA_TRY_DO(parse_rendezvous_reply(text));
  return Attempt{.joined = {.number = number, .channel = std::move(host), .how = "TCP with TLS"}};
}

Result<Attempt> attempt(const ConnectOptions& options, std::uint64_t number) {
  if (!options.is_plain) return attempt_encrypted(options, number);
  REGATTA_TRY(fd, connect_tcp(options.server));
  std::unique_ptr<RdmaPacketPort> port;
  std::string why_tcp;
  if (options.transport != TransportChoice::kTcp) {
    auto opened = open_end(fd.get(), options.rdma_address);
    if (opened) port = std::move(*opened);
    if (!opened && options.transport == TransportChoice::kRdma) return opened.error();
    if (!opened) why_tcp = opened.error().message;
  }
  std::string ask = join_request(options, number);
  if (port) ask += R"(,"rdma":")" + format_queue_card(port->card()) + '"';
  static_cast<void>(send_text(fd.get(), ask + "}"));
  REGATTA_TRY(text, receive_text(fd.get()));
  REGATTA_TRY(answer, parse_rendezvous_reply(text));
  if (answer.card.empty() || !port) {
    if (!answer.card.empty())
      return Error{Code::kUnavailable, options.server + ": answers what was not asked"};
    if (!answer.why_tcp.empty()) why_tcp = options.server + ": " + answer.why_tcp;
    if (options.transport == TransportChoice::kRdma) return Error{Code::kUnsupported, why_tcp};
    return Attempt{.joined = {.number = number,
                              .channel = make_tcp_channel(std::move(fd)),
                              .how = why_tcp.empty() ? "TCP" : "TCP: " + why_tcp}};
  }
  const std::string how = "RDMA by " + port->device();
  const Status connected = connect(*port, answer.card);
  auto channel = connected ? handshake(std::move(port), std::move(fd), true)
                           : Result<std::unique_ptr<ByteChannel>>(connected.error());
  if (channel)
    return Attempt{
        .joined = {.number = number, .channel = std::move(*channel), .is_rdma = true, .how = how}};
  if (options.transport == TransportChoice::kRdma) return channel.error();
  return Attempt{.why_tcp = channel.error().message};
}

}  // namespace

Result<std::unique_ptr<StreamChannel>> connect_to_server(const ConnectOptions& options) {
  REGATTA_TRY(fd, connect_tcp(options.server));
  if (options.is_plain) return make_tcp_channel(std::move(fd));
  auto channel = connect_tls(std::move(fd), secret_of_ticket(options.ticket), kBeginTimeout);
  if (channel) return channel;
  return Error{channel.error().code,
               options.server + ": " + channel.error().message + "; the reservation may be over"};
}

Result<TransportChoice> parse_transport(std::string_view word) {
  if (word.empty() || word == "auto") return TransportChoice::kAuto;
  if (word == "tcp") return TransportChoice::kTcp;
  if (word == "rdma") return TransportChoice::kRdma;
  return Error{Code::kInvalidInput, std::string(word) + ": is no transport; use auto, tcp or rdma"};
}

std::string format_queue_card(const rdma::QueueCard& card) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : rdma::encode_card(card)) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

Result<rdma::QueueCard> parse_queue_card(std::string_view text) {
  const Error bad{Code::kInvalidInput, "what came is no queue pair of this version"};
  if (text.size() > kCardTextMax || text.size() % 2 != 0) return bad;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) return bad;
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return rdma::decode_card(bytes);
}

std::string format_rendezvous_reply(const RendezvousReply& answer) {
  if (!answer.card.empty()) return std::string(kRdma) + answer.card;
  if (!answer.why_tcp.empty()) return std::string(kTcp) + answer.why_tcp;
  return std::string(kJoined);
}

Result<RendezvousReply> parse_rendezvous_reply(std::string_view text) {
  if (text == kJoined) return RendezvousReply{};
  if (text.starts_with(kTcp) && text.size() > kTcp.size())
    return RendezvousReply{.why_tcp = std::string(text.substr(kTcp.size()))};
  if (text.starts_with(kRdma) && text.size() > kRdma.size())
    return RendezvousReply{.card = std::string(text.substr(kRdma.size()))};
  return Error{Code::kInvalidInput, "what came is no message of a GPU server of this version"};
}

Result<HostChannel> connect_to_host(const ConnectOptions& options, std::uint64_t& next_number) {
  REGATTA_TRY(first, attempt(options, next_number++));
  if (first.joined.channel) return std::move(first.joined);
  ConnectOptions by_tcp = options;
  by_tcp.transport = TransportChoice::kTcp;
  REGATTA_TRY(second, attempt(by_tcp, next_number++));
  second.joined.how = "TCP: " + first.why_tcp;
  return std::move(second.joined);
}

std::unique_ptr<ByteChannel> accept_program(os::UniqueFd fd, const std::string& key,
                                            const std::string& offer,
                                            const std::string& rdma_address) {
  if (!key.empty()) {
    const SharedSecret secret = secret_of_program(key);
    auto channel = accept_tls(
        std::move(fd),
        [&](std::string_view identity) {
          return identity == secret.identity ? std::optional(secret.key) : std::nullopt;
        },
        kBeginTimeout, TlsReading::kAhead);
    const bool has_begun = channel && send_text(**channel, format_rendezvous_reply({}));
    return has_begun ? std::move(*channel) : nullptr;
  }
  RendezvousReply answer;
  std::unique_ptr<RdmaPacketPort> port;
  if (!offer.empty()) {
    auto opened = open_end(fd.get(), rdma_address);
    // Posts the receives first: the program may send as soon as it knows this queue pair.
    const Status ready = opened ? connect(**opened, offer) : Status(opened.error());
    if (ready) port = std::move(*opened);
    if (!ready) answer.why_tcp = ready.error().message;
  }
  if (port) answer.card = format_queue_card(port->card());
  if (!send_text(fd.get(), format_rendezvous_reply(answer))) return nullptr;
  if (!port) return make_tcp_channel(std::move(fd));
  auto channel = handshake(std::move(port), std::move(fd), false);
  return channel ? std::move(*channel) : nullptr;
}

}  // namespace regatta::remote
