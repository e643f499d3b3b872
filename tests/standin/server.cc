#include "tests/standin/server.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"
#include "tests/standin/packet.h"

namespace regatta::standin {
namespace {

Time read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + Time(now.tv_nsec);
}

Time real_now() {
  return read_clock(CLOCK_MONOTONIC);
}

Op op_of(const Packet& packet) {
  Op op{.kind = packet.op,
        .engine = packet.engine,
        .width = packet.width,
        .duration = Time(packet.time_ns),
        .bytes = packet.bytes,
        .ticket = packet.ticket,
        .after = {}};
  if (packet.after_stream != 0) op.after.push_back({packet.after_stream, packet.after_sequence});
  return op;
}

}  // namespace

Server::Server(os::UniqueFd listener, const Settings& settings, bool simulated)
    : listener_(std::move(listener)),
      device_(settings),
      simulated_(simulated),
      epoch_(simulated ? Time{} : read_clock(CLOCK_REALTIME) - real_now()) {}

void Server::accept_clients() {
  while (true) {
    os::UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    ucred who{};
    socklen_t size = sizeof who;
    getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size);
    device_.add_client(next_id_, static_cast<std::uint32_t>(who.pid));
    clients_[next_id_++].socket = std::move(socket);
  }
}

void Server::send(ClientId id, const Packet& packet, int file) {
  clients_.at(id).outbox.push_back({packet, file});
}

void Server::flush(ClientId id) {
  Client& client = clients_.at(id);
  while (!client.outbox.empty()) {
    const auto& [packet, file] = client.outbox.front();
    if (send_packet(client.socket.get(), packet, file, MSG_DONTWAIT) < 0) {
      if (errno != EAGAIN && errno != EINTR) gone_.push_back(id);
      return;
    }
    client.outbox.pop_front();
  }
}

void Server::read_client(ClientId id) {
  Packet packet;
  while (true) {
    os::UniqueFd file;
    const ssize_t bytes =
        receive_packet(clients_.at(id).socket.get(), &packet, &file, MSG_DONTWAIT);
    if (bytes == sizeof packet) {
      handle(id, packet, std::move(file));
    } else if (bytes >= 0 || (errno != EAGAIN && errno != EINTR)) {
      gone_.push_back(id);
      return;
    } else {
      return;
    }
  }
}

bool Server::handle_memory(ClientId id, const Packet& packet) {
  switch (packet.message) {
    case PacketType::kReserve:
      send(id, reply_to(packet, device_.reserve(id, packet.bytes) ? 1 : 0));
      return true;
    case PacketType::kRelease:
      if (!device_.release(id, packet.bytes)) gone_.push_back(id);
      return true;
    case PacketType::kMemory: {
      Packet reply = reply_to(packet, 1);
      reply.bytes = device_.free_bytes();
      reply.sequence = device_.most_used_bytes();
      send(id, reply);
      return true;
    }
    case PacketType::kOpenContext: {
      const bool has_room = device_.reserve(id, device_.settings().context_bytes);
      if (has_room) device_.open_context({id, packet.context});
      send(id, reply_to(packet, has_room ? 1 : 0));
      return true;
    }
    case PacketType::kCloseContext:
      device_.close_context({id, packet.context});
      device_.release(id, device_.settings().context_bytes);
      return true;
    default:
      return false;
  }
}

bool Server::handle_question(ClientId id, const Packet& packet) {
  Packet reply = reply_to(packet, 1);
  switch (packet.message) {
    case PacketType::kHandshake:
      reply.bytes = device_.settings().memory_bytes;
      reply.width = device_.settings().processors;
      reply.ticket = static_cast<std::uint64_t>(getpid());
      break;
    case PacketType::kQueryStream:
      reply.status = device_.is_done({id, packet.stream}, packet.sequence) ? 1 : 0;
      break;
    case PacketType::kQueryMark: {
      const auto time = device_.mark_time({id, packet.ticket});
      reply.status = time ? 1 : 0;
      reply.time_ns = time.value_or(Time{}).count();
      break;
    }
    case PacketType::kUsage:
      for (const auto& [client, usage] : device_.usage())
        send(id, {.message = PacketType::kUsageLine,
                  .request = packet.request,
                  .context = usage.contexts,
                  .sequence = usage.kernels,
                  .bytes = usage.bytes,
                  .time_ns = usage.busy.count(),
                  .width = usage.pid});
      break;
    case PacketType::kLog:
      for (const Interval& interval : device_.log())
        send(id, {.message = PacketType::kLogLine,
                  .request = packet.request,
                  .context = interval.context,
                  .time_ns = interval.start.count(),
                  .end_time_ns = interval.end.count(),
                  .width = interval.pid});
      break;
    case PacketType::kEngineLog:
      for (const EngineInterval& interval : device_.engine_log())
        send(id, {.message = PacketType::kEngineLine,
                  .request = packet.request,
                  .bytes = interval.bytes,
                  .time_ns = interval.start.count(),
                  .end_time_ns = interval.end.count(),
                  .width = interval.pid,
                  .engine = interval.engine});
      break;
    case PacketType::kSamples:
      send_samples(id, packet);
      return true;
    default:
      return false;
  }
  if (packet.message != PacketType::kHandshake) clients_.at(id).is_patient = true;
  send(id, reply);
  return true;
}

void Server::send_samples(ClientId id, const Packet& question) {
  const Time period = device_.settings().sample_period;
  Packet reply = reply_to(question, 1);
  reply.end_time_ns = period.count();
  reply.bytes = device_.free_bytes();
  for (const Sample& sample : device_.samples(Time(question.time_ns) - epoch_)) {
    reply.time_ns = (epoch_ + sample.end).count();
    for (const auto& [pid, activity] : sample.processes)
      send(id, {.message = PacketType::kSampleLine,
                .request = question.request,
                .sequence = static_cast<std::uint64_t>(activity.copies.count()),
                .bytes = static_cast<std::uint64_t>(activity.kernels.count()),
                .time_ns = reply.time_ns,
                .ticket = static_cast<std::uint64_t>(activity.encoding.count()),
                .after_sequence = static_cast<std::uint64_t>(activity.decoding.count()),
                .width = pid});
  }
  send(id, reply);
}

void Server::handle_work(ClientId id, const Packet& packet) {
  const Key stream{id, packet.stream};
  switch (packet.message) {
    case PacketType::kOpenStream:
      device_.open_stream(stream, packet.context, packet.stream_kind,
                          static_cast<int>(packet.time_ns));
      break;
    case PacketType::kCloseStream:
      device_.close_stream(stream);
      break;
    case PacketType::kSubmit:
      clients_.at(id).is_patient = false;
      if (!device_.submit(stream, op_of(packet))) gone_.push_back(id);
      break;
    case PacketType::kAnswer:
      device_.answer(id, packet.ticket);
      break;
    case PacketType::kWaitStream:
    case PacketType::kWaitContext:
      clients_.at(id).is_patient = true;
      clients_.at(id).waits.push_back(packet);
      break;
    case PacketType::kForgetMark:
      device_.forget_mark({id, packet.ticket});
      break;
    default:  // not ours: an end to it
      gone_.push_back(id);
  }
}

bool Server::handle_share(ClientId id, const Packet& packet, os::UniqueFd& file) {
  Packet reply = reply_to(packet, 1);
  switch (packet.message) {
    case PacketType::kFile:
      shares_.add_file(id, std::move(file));
      return true;
    case PacketType::kShow:
      reply.ticket = shares_.show(id, packet.sequence, packet.bytes);
      reply.status = reply.ticket == 0 ? 0 : 1;
      break;
    case PacketType::kGiveUp:
      reply.status = shares_.give_up(id, packet.ticket, packet.width == 1) ? 1 : 0;
      break;
    case PacketType::kOpenShare: {
      const Share* const share = shares_.open(id, packet.ticket);
      reply.status = share == nullptr ? 0 : 1;
      if (share == nullptr) break;
      reply.sequence = share->offset;
      reply.bytes = share->bytes;
      send(id, reply, share->file.get());
      return true;
    }
    case PacketType::kCloseShare:
      shares_.close(id, packet.ticket);
      return true;
    default:
      return false;
  }
  send(id, reply);
  return true;
}

bool Server::handle_session(ClientId id, const Packet& packet) {
  switch (packet.message) {
    case PacketType::kOpenSession:
      sessions_[{id, packet.ticket}] = packet.engine;
      return true;
    case PacketType::kCloseSession:
      sessions_.erase({id, packet.ticket});
      return true;
    case PacketType::kSessions:
      for (const auto& [key, engine] : sessions_)
        send(id, {.message = PacketType::kSessionLine,
                  .request = packet.request,
                  .ticket = key.id,
                  .width = device_.usage().at(key.client).pid,
                  .engine = engine});
      send(id, reply_to(packet, 1));
      return true;
    default:
      return false;
  }
}

void Server::handle(ClientId id, const Packet& packet, os::UniqueFd file) {
  if (handle_share(id, packet, file) || handle_session(id, packet) || handle_control(id, packet))
    return;
  if (!handle_memory(id, packet) && !handle_question(id, packet)) handle_work(id, packet);
}

bool Server::is_over(ClientId id, const Packet& wait) const {
  return wait.message == PacketType::kWaitStream ? device_.is_done({id, wait.stream}, wait.sequence)
                                                 : device_.is_idle({id, wait.context});
}

void Server::answer_waits() {
  for (auto& [id, client] : clients_) {
    for (const Packet& wait : client.waits)
      if (is_over(id, wait)) {
        client.is_patient = false;
        send(id, reply_to(wait, 1));
      }
    std::erase_if(client.waits, [&](const Packet& wait) { return is_over(id, wait); });
  }
}

void Server::drop_gone() {
  for (const ClientId id : gone_)
    if (clients_.erase(id) != 0) {
      shares_.remove_client(id);
      std::erase_if(sessions_, [&](const auto& entry) { return entry.first.client == id; });
      device_.remove_client(id);
      fail_controls(id);
    }
  gone_.clear();
}

bool Server::may_jump() const {
  return !device_.awaits_answers() && std::ranges::all_of(clients_, [&](const auto& entry) {
    return entry.second.is_patient || !entry.second.waits.empty() || !device_.has_work(entry.first);
  });
}

// The device works until now, simulated or real, and who waited for it hears of it.
void Server::work() {
  std::vector<Notice> notices;
  device_.advance(simulated_ ? simulated_now_ : real_now(), notices);
  answer_waits();
  while (simulated_ && notices.empty() && may_jump()) {
    const auto next = device_.next_event();
    if (!next) break;
    simulated_now_ = *next;
    device_.advance(simulated_now_, notices);
    answer_waits();
  }
  for (const Notice& notice : notices)
    send(notice.client, {.message = PacketType::kCall, .ticket = notice.ticket});
}

// How long nothing happens by itself; none: for ever.
std::optional<Time> Server::wait_time() const {
  if (simulated_) return std::nullopt;
  const auto next = device_.next_event();
  if (!next) return std::nullopt;
  return std::max(*next - real_now(), Time{});
}

Status Server::run(int stop_fd) {
  while (true) {
    std::vector<pollfd> polled = {{stop_fd, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    std::vector<ClientId> ids;
    for (auto& [id, client] : clients_) {
      const auto events = static_cast<short>(client.outbox.empty() ? POLLIN : POLLIN | POLLOUT);
      polled.push_back({client.socket.get(), events, 0});
      ids.push_back(id);
    }
    const auto wait = wait_time();
    const timespec timeout{.tv_sec = wait.value_or(Time{}).count() / 1'000'000'000,
                           .tv_nsec = wait.value_or(Time{}).count() % 1'000'000'000};
    if (ppoll(polled.data(), polled.size(), wait ? &timeout : nullptr, nullptr) < 0 &&
        errno != EINTR)
      return Error{Code::kUnavailable, "cannot wait for clients: " + os::errno_text()};
    if (polled[0].revents != 0) return {};
    work();  // what was due before what now arrives
    if (polled[1].revents != 0) accept_clients();
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (polled[i + 2].revents != 0) read_client(ids[i]);
    drop_gone();
    work();
    for (const auto& [id, client] : clients_)
      if (!client.outbox.empty()) flush(id);
    drop_gone();
  }
}

}  // namespace regatta::standin
