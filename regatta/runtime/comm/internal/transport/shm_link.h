// comm/internal/transport/shm_link.h: the link to a rank of the same server: two rings in shared
// memory, and a unix socket that wakes the other side and shows the end of its process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"

namespace regatta::comm {

class ShmLink : public PeerLink {
 public:
  // The creator of the segment writes direction 0.
  ShmLink(int peer, RingSegment segment, bool is_creator, os::UniqueFd wake_socket, LinkSink& sink);

  std::vector<int> fds() const override { return {wake_socket_.get()}; }
  void post_control(const PacketHeader& header, std::string_view text) override;
  void post_message(OutMessage& message) override;
  bool progress() override;
  bool arm() override;
  void disarm() override;
  void on_event(int slot, std::uint32_t events) override;
  void abandon() override;
  bool is_flushed() override;
  void shut_down() override;

 private:
  struct Control {
    PacketHeader header;
    std::string text;
  };

  bool write_some();
  bool read_some();
  bool write_fragment(OutMessage& message);
  void wake_peer();
  void lose(std::string_view reason);

  int peer_;
  LinkSink& sink_;
  RingSegment segment_;
  RingWriter writer_;
  RingReader reader_;
  os::UniqueFd wake_socket_;
  std::deque<Control> controls_;
  std::deque<OutMessage*> messages_;
  bool peer_closed_ = false;  // the wake-up socket's other end is closed
  bool lost_ = false;
};

}  // namespace regatta::comm
