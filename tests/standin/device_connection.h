// tests/standin/device_connection.h: a process's connection to one stand-in device, and the two
// threads behind it: one hears the device, one does what the device calls for, so that neither
// holds up the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "tests/standin/wire.h"

namespace regatta::standin {

class DeviceConnection {
 public:
  // False when no device listens at `path`. Once; the link lives as long as the process.
  bool connect(const std::string& path);
  void send(const Packet& packet, int file = -1);
  // The reply, status 0 when the device is gone; lines that precede it go to `lines`.
  Packet call(Packet packet, std::vector<Packet>* lines = nullptr);
  // The file that comes with the reply goes to `file`.
  Packet call(Packet packet, os::UniqueFd* file);
  // The ticket under which the device calls for `action`.
  std::uint64_t add_action(std::function<void()> action);
  // Called in a thread of its own for a request of another process; the packet goes back. Set it
  // before this process can be found.
  void set_control(std::function<Packet(const Packet&)> control) { control_ = std::move(control); }
  // In a child after fork(): the connection stays the parent's alone.
  void abandon();
  bool is_lost() const { return lost_; }

 private:
  struct Wait {
    bool done = false;
    Packet reply;
    std::vector<Packet> lines;
    os::UniqueFd file;
  };

  Packet wait_for_reply(Packet packet, Wait& wait);
  void read_packets();
  void work();
  void be_controlled();

  os::UniqueFd socket_;
  std::mutex mutex_;
  std::condition_variable heard_;
  std::condition_variable called_;
  std::map<std::uint64_t, Wait*> waits_;
  std::map<std::uint64_t, std::function<void()>> actions_;
  std::deque<std::uint64_t> calls_;
  std::function<Packet(const Packet&)> control_;
  std::deque<Packet> controls_;
  bool is_controlled_ = false;  // its thread has begun
  std::condition_variable controlled_;
  std::uint64_t last_request_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::atomic<bool> lost_ = false;
};

}  // namespace regatta::standin
