// experimental/remote/internal/packet_port.h: the operations of a queue pair that packet_channel.h
// needs: packets of limited length arrive whole and in order, each in a posted receive.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regatta::remote {

inline constexpr std::uint32_t kPortReceives = 32;
inline constexpr std::uint32_t kPortSends = 32;
inline constexpr std::size_t kPacketBytes = std::size_t{32} << 10;

// The completion of a posted send or receive.
struct Completion {
  bool is_good = false;
  bool is_send = false;
  std::uint32_t slot = 0;
  std::size_t bytes = 0;       // of a packet that came
  std::uint32_t returned = 0;  // the immediate value
};

// One thread at a time.
class PacketPort {
 public:
  PacketPort() = default;
  PacketPort(const PacketPort&) = delete;
  PacketPort& operator=(const PacketPort&) = delete;
  virtual ~PacketPort() = default;

  // Memory of kPacketBytes.
  virtual std::byte* send_slot(std::uint32_t slot) = 0;
  virtual const std::byte* receive_slot(std::uint32_t slot) = 0;
  // False: the port has failed. All receives are posted at the start.
  virtual bool send(std::uint32_t slot, std::size_t bytes, std::uint32_t returned) = 0;
  virtual bool post_receive(std::uint32_t slot) = 0;
  virtual bool poll(Completion& completion) = 0;
  // fd() is readable once a completion arrives, until it is armed again.
  virtual void arm() = 0;
  virtual int fd() const = 0;
  // Stops sending and receiving.
  virtual void stop() = 0;
};

}  // namespace regatta::remote
