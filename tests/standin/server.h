// tests/standin/server.h: the stand-in device behind its socket: who is connected, who waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "tests/standin/device.h"
#include "tests/standin/shares.h"
#include "tests/standin/wire.h"

namespace regatta::standin {

inline Packet reply_to(const Packet& packet, std::uint32_t status) {
  return {.message = PacketType::kReply, .status = status, .request = packet.request};
}

class Server {
 public:
  // `simulated`: time stands still but for waiting: it goes to the next event when every client
  // that has given work waits for it or asks whether it is done.
  Server(os::UniqueFd listener, const Settings& settings, bool simulated);

  // Serves until `stop_fd` can be read.
  Status run(int stop_fd);

 private:
  struct Outgoing {
    Packet packet;
    int file = -1;  // lent: the share keeps it
  };
  struct Client {
    os::UniqueFd socket;
    std::deque<Outgoing> outbox;  // what the socket has no room for
    std::vector<Packet> waits;    // requests that are answered when something is done
    bool is_patient = false;      // nothing but waits and questions since its last work
  };

  // A request of one process to another.
  struct Control {
    ClientId asks = 0;
    ClientId does = 0;
    Packet question;
  };

  void accept_clients();
  void read_client(ClientId id);
  void handle(ClientId id, const Packet& packet, os::UniqueFd file);
  bool handle_share(ClientId id, const Packet& packet, os::UniqueFd& file);
  bool handle_memory(ClientId id, const Packet& packet);
  bool handle_question(ClientId id, const Packet& packet);
  bool handle_control(ClientId id, const Packet& packet);
  void fail_controls(ClientId gone);
  bool handle_session(ClientId id, const Packet& packet);
  void send_samples(ClientId id, const Packet& question);
  void handle_work(ClientId id, const Packet& packet);
  bool is_over(ClientId id, const Packet& wait) const;
  void answer_waits();
  void send(ClientId id, const Packet& packet, int file = -1);
  void flush(ClientId id);
  void drop_gone();
  void work();
  bool may_jump() const;
  std::optional<Time> wait_time() const;

  os::UniqueFd listener_;
  Device device_;
  Shares shares_{device_};
  std::map<Key, Engine> sessions_;             // of codecs
  std::map<std::uint64_t, Control> controls_;  // under way
  std::uint64_t last_control_ = 0;
  bool simulated_;
  Time simulated_now_{};
  Time epoch_{};  // when the device's time was 0, as the wall clock has it; simulated: 0
  ClientId next_id_ = 1;
  std::map<ClientId, Client> clients_;
  std::vector<ClientId> gone_;
};

}  // namespace regatta::standin
