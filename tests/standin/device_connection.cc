#include "tests/standin/device_connection.h"

#include <csignal>
#include <thread>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>

#include "tests/standin/packet.h"

namespace regatta::standin {

bool DeviceConnection::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  socket_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return false;
  // The program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { read_packets(); }).detach();
  std::thread([this] { work(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

void DeviceConnection::send(const Packet& packet, int file) {
  send_packet(socket_.get(), packet, file);
}

Packet DeviceConnection::wait_for_reply(Packet packet, Wait& wait) {
  std::unique_lock lock(mutex_);
  packet.request = ++last_request_;
  waits_[packet.request] = &wait;
  lock.unlock();
  send(packet);
  lock.lock();
  heard_.wait(lock, [&] { return wait.done || lost_; });
  waits_.erase(packet.request);
  return wait.reply;
}

Packet DeviceConnection::call(Packet packet, std::vector<Packet>* lines) {
  Wait wait;
  const Packet reply = wait_for_reply(packet, wait);
  if (lines != nullptr) *lines = std::move(wait.lines);
  return reply;
}

Packet DeviceConnection::call(Packet packet, os::UniqueFd* file) {
  Wait wait;
  const Packet reply = wait_for_reply(packet, wait);
  *file = std::move(wait.file);
  return reply;
}

std::uint64_t DeviceConnection::add_action(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  actions_[++last_ticket_] = std::move(action);
  return last_ticket_;
}

void DeviceConnection::abandon() {
  socket_.reset();
}

void DeviceConnection::read_packets() {
  Packet packet;
  os::UniqueFd file;
  while (receive_packet(socket_.get(), &packet, &file) == sizeof packet) {
    const std::lock_guard lock(mutex_);
    if (packet.message == PacketType::kCall) {
      calls_.push_back(packet.ticket);
      called_.notify_one();
      continue;
    }
    if (packet.message == PacketType::kControlCall) {
      controls_.push_back(packet);
      if (!is_controlled_ && control_) std::thread([this] { be_controlled(); }).detach();
      is_controlled_ = true;
      controlled_.notify_one();
      continue;
    }
    const auto at = waits_.find(packet.request);
    if (at == waits_.end()) continue;
    if (packet.message != PacketType::kReply) {
      at->second->lines.push_back(packet);
      continue;
    }
    at->second->reply = packet;
    at->second->file = std::move(file);
    at->second->done = true;
    heard_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  lost_ = true;
  heard_.notify_all();
  called_.notify_all();
  controlled_.notify_all();
}

void DeviceConnection::be_controlled() {
  std::unique_lock lock(mutex_);
  while (true) {
    controlled_.wait(lock, [&] { return !controls_.empty() || lost_; });
    if (controls_.empty()) return;
    const Packet control = controls_.front();
    controls_.pop_front();
    lock.unlock();
    send(control_(control));
    lock.lock();
  }
}

void DeviceConnection::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    called_.wait(lock, [&] { return !calls_.empty() || lost_; });
    if (calls_.empty()) return;
    const std::uint64_t ticket = calls_.front();
    calls_.pop_front();
    const std::function<void()> action = std::move(actions_[ticket]);
    actions_.erase(ticket);
    lock.unlock();
    if (action) action();
    send({.message = PacketType::kAnswer, .ticket = ticket});
    lock.lock();
  }
}

}  // namespace regatta::standin
