// sharing/internal/swap/fake_swap_device.h: for tests: a device whose memory holds one number for
// each block. Copies complete when they are waited for; operations that a real device forbids are
// errors.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"

namespace regatta::sharing {

class FakeSwapDevice : public SwapDevice {
 public:
  static constexpr std::uint64_t kBlock = SwappableMemory::kBlock;

  std::uint64_t room = ~0ULL;       // bytes of the device
  std::uint64_t host_room = ~0ULL;  // of the host
  int copies_left = 1 << 30;        // then they fail
  bool can_drain = true;
  std::uint64_t used = 0;
  std::uint64_t host_used = 0;
  std::uint64_t reserved = 0;
  int copies = 0;
  int drains = 0;
  std::size_t most_under_way = 0;
  std::vector<std::string> errors;

  int& at(std::uint64_t address) {
    const auto block = blocks_.find(address / kBlock * kBlock);
    if (block == blocks_.end()) {
      errors.push_back("touched what is not there");
      return nowhere_;
    }
    return block->second;
  }
  bool is_mapped(std::uint64_t address) const {
    return blocks_.contains(address / kBlock * kBlock);
  }

  std::optional<std::uint64_t> reserve(std::uint64_t bytes) override {
    const std::uint64_t address = next_;
    next_ += bytes + kBlock;
    reserved += bytes;
    return address;
  }
  void unreserve(std::uint64_t address, std::uint64_t bytes) override {
    for (std::uint64_t i = 0; i < bytes; i += kBlock)
      if (blocks_.contains(address + i)) errors.push_back("addresses freed with memory under them");
    reserved -= bytes;
  }
  bool map(std::uint64_t address, std::uint64_t bytes) override {
    if (used + bytes > room) return false;
    used += bytes;
    for (std::uint64_t i = 0; i < bytes; i += kBlock)
      if (!blocks_.emplace(address + i, -1).second) errors.push_back("mapped twice");
    return true;
  }
  void unmap(std::uint64_t address, std::uint64_t bytes) override {
    for (const auto& [ticket, one] : under_way_)
      if (one.address == address) errors.push_back("unmapped while it is copied");
    used -= bytes;
    for (std::uint64_t i = 0; i < bytes; i += kBlock)
      if (blocks_.erase(address + i) == 0) errors.push_back("unmapped twice");
  }
  void* pin(Home, std::uint64_t bytes) override {
    if (host_used + bytes > host_room) return nullptr;
    host_used += bytes;
    auto* const memory = new std::vector<int>(bytes / kBlock, -2);
    host_.emplace(memory, memory);
    return memory;
  }
  void unpin(Home, void* memory) override {
    host_used -= static_cast<std::vector<int>*>(memory)->size() * kBlock;
    host_.erase(memory);
  }
  CopyHandle copy(Home, To to, std::uint64_t address, void* host, std::uint64_t bytes) override {
    if (--copies_left < 0) return nullptr;
    ++copies;
    auto* const ticket = new int;
    under_way_[ticket] = {to, address, static_cast<std::vector<int>*>(host), bytes};
    most_under_way = std::max(most_under_way, under_way_.size());
    return ticket;
  }
  bool wait(Home, CopyHandle ticket) override {
    const Copy one = under_way_.at(ticket);
    under_way_.erase(ticket);
    delete static_cast<int*>(ticket);
    for (std::uint64_t i = 0; i * kBlock < one.bytes; ++i) {
      int& device = at(one.address + i * kBlock);
      int& host = (*one.host)[i];
      one.to == To::kHost ? host = device : device = host;
    }
    return true;
  }
  bool drain(Home) override {
    ++drains;
    return can_drain;
  }

 private:
  struct Copy {
    To to = To::kHost;
    std::uint64_t address = 0;
    std::vector<int>* host = nullptr;
    std::uint64_t bytes = 0;
  };
  std::map<std::uint64_t, int> blocks_;
  std::map<void*, std::unique_ptr<std::vector<int>>> host_;
  std::map<void*, Copy> under_way_;
  std::uint64_t next_ = kBlock;
  int nowhere_ = 0;
};

}  // namespace regatta::sharing
