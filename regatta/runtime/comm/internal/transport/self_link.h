// comm/internal/transport/self_link.h: the link of a rank to itself, which delivers packets in
// place.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "regatta/runtime/comm/internal/transport/peer_link.h"

namespace regatta::comm {

class SelfLink : public PeerLink {
 public:
  SelfLink(int self, LinkSink& sink) : self_(self), sink_(sink) {}

  std::vector<int> fds() const override { return {}; }
  void post_control(const PacketHeader& header, std::string_view /*text*/) override {
    controls_.push_back(header);
  }
  void post_message(OutMessage& message) override { messages_.push_back(&message); }
  bool progress() override;
  void on_event(int /*slot*/, std::uint32_t /*events*/) override {}
  void abandon() override { messages_.clear(); }
  bool is_flushed() override { return controls_.empty() && messages_.empty(); }
  void shut_down() override {}

 private:
  void deliver(OutMessage& message);

  int self_;
  LinkSink& sink_;
  std::deque<PacketHeader> controls_;
  std::deque<OutMessage*> messages_;
};

}  // namespace regatta::comm
