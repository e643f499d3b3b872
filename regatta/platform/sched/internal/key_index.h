// sched/internal/key_index.h: finds the numbers of keys that stand elsewhere by their hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta::sched {

// Open addressing with linear steps. The caller knows the keys of the numbers: `is_key(number)`
// tells whether the number's key is the one looked for. Time: constant in the mean, where hashes
// are spread well.
class KeyIndex {
 public:
  // Room for so many keys without moving them.
  explicit KeyIndex(std::size_t expected = 0) { resize_for(expected); }

  // -1: none.
  template <typename IsKey>
  int find(std::size_t hash, const IsKey& is_key) const {
    return slots_[slot_of(hash, is_key)].number;
  }

  // The number of the equal key that is there already; else `number`, which is there from now on.
  template <typename IsKey>
  int find_or_add(std::size_t hash, int number, const IsKey& is_key) {
    Slot& slot = slots_[slot_of(hash, is_key)];
    if (slot.number >= 0) return slot.number;
    slot = {short_hash(hash), number};
    if (++size_ * 2 > slots_.size()) resize_for(size_ * 2);
    return number;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    int number = -1;
  };
  static constexpr std::size_t kFewest = 16;

  // The upper half of a product with the golden ratio: spreads hashes that are small numbers.
  static std::uint32_t short_hash(std::size_t hash) {
    return static_cast<std::uint32_t>((hash * 0x9e3779b97f4a7c15ULL) >> 32U);
  }

  template <typename IsKey>
  std::size_t slot_of(std::size_t hash, const IsKey& is_key) const {
    const std::uint32_t wanted = short_hash(hash);
    std::size_t slot = wanted & (slots_.size() - 1);
    while (slots_[slot].number >= 0 &&
           (slots_[slot].hash != wanted || !is_key(slots_[slot].number)))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  void resize_for(std::size_t keys) {
    std::size_t slots = kFewest;
    while (slots < 2 * keys)
      slots *= 2;
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& each : old) {
      if (each.number < 0) continue;
      std::size_t slot = each.hash & (slots_.size() - 1);
      while (slots_[slot].number >= 0)
        slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = each;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace regatta::sched
