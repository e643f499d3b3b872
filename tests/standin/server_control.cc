// Processes that are taken off the device and brought back, as others want it.
#include "tests/standin/server.h"

namespace regatta::standin {

bool Server::handle_control(ClientId id, const Packet& packet) {
  switch (packet.message) {
    case PacketType::kSuspend:
      device_.suspend(id);
      send(id, reply_to(packet, 1));
      return true;
    case PacketType::kResume:
      send(id, reply_to(packet, device_.resume(id) ? 1 : 0));
      return true;
    case PacketType::kControl: {
      ClientId target = 0;
      for (const auto& [client, usage] : device_.usage())
        if (usage.pid == packet.width && shares_.has_file(client)) target = client;
      if (target == 0) {
        send(id, reply_to(packet, 0));
        return true;
      }
      controls_[++last_control_] = {id, target, packet};
      send(target, {.message = PacketType::kControlCall,
                    .sequence = packet.sequence,
                    .time_ns = packet.time_ns,
                    .ticket = last_control_});
      return true;
    }
    case PacketType::kControlDone: {
      const auto at = controls_.find(packet.ticket);
      if (at == controls_.end() || at->second.does != id) return true;
      Packet reply = reply_to(at->second.question, 1);
      reply.sequence = packet.sequence;
      reply.bytes = packet.bytes;
      send(at->second.asks, reply);
      controls_.erase(at);
      return true;
    }
    default:
      return false;
  }
}

// After a client has gone.
void Server::fail_controls(ClientId gone) {
  for (const auto& [number, control] : controls_)
    if (control.does == gone && clients_.contains(control.asks))
      send(control.asks, reply_to(control.question, 0));
  std::erase_if(controls_, [&](const auto& entry) {
    return entry.second.does == gone || entry.second.asks == gone;
  });
}

}  // namespace regatta::standin
