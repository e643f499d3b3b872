#include "tests/standin/arena.h"

#include <algorithm>
#include <iterator>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace regatta::standin {
namespace {

constexpr std::uint64_t kSmallStep = 512;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

std::optional<std::uint64_t> take(std::map<std::uint64_t, std::uint64_t>& ranges,
                                  std::uint64_t bytes) {
  const auto at =
      std::ranges::find_if(ranges, [&](const auto& range) { return range.second >= bytes; });
  if (at == ranges.end()) return std::nullopt;
  const auto [offset, size] = *at;
  ranges.erase(at);
  if (size > bytes) ranges[offset + bytes] = size - bytes;
  return offset;
}

void give(std::map<std::uint64_t, std::uint64_t>& ranges, std::uint64_t offset,
          std::uint64_t bytes) {
  auto at = ranges.emplace(offset, bytes).first;
  if (const auto next = std::next(at); next != ranges.end() && next->first == offset + bytes) {
    at->second += next->second;
    ranges.erase(next);
  }
  if (at == ranges.begin()) return;
  const auto previous = std::prev(at);
  if (previous->first + previous->second != at->first) return;
  previous->second += at->second;
  ranges.erase(at);
}

bool is_small(std::uint64_t bytes) {
  return bytes < Arena::kBlock / 2;
}

}  // namespace

bool Arena::open(DeviceConnection& link, std::uint64_t device_bytes) {
  link_ = &link;
  // Twice: free ranges need not be next to each other.
  const std::uint64_t bytes = 2 * round_up(device_bytes, kBlock) + kBlock;
  file_.reset(memfd_create("standin device", MFD_CLOEXEC));
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) return false;
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(base);
  void* const addresses =
      mmap(nullptr, bytes + kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) return false;
  addresses_ = round_up(reinterpret_cast<std::uint64_t>(addresses), kBlock);
  link.send({.message = PacketType::kFile}, file_.get());
  free_blocks_[0] = all_bytes_ = bytes;
  return true;
}

std::uint64_t Arena::held_bytes() const {
  std::uint64_t held = all_bytes_;
  for (const auto& [offset, bytes] : free_blocks_)
    held -= bytes;
  return held;
}

// Memory that was never written has no bytes in the file.
void Arena::save() {
  off_t begin = 0;
  while ((begin = lseek(file_.get(), begin, SEEK_DATA)) >= 0) {
    const off_t end = lseek(file_.get(), begin, SEEK_HOLE);
    saved_.push_back({static_cast<std::uint64_t>(begin), {base_ + begin, base_ + end}});
    begin = end;
  }
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
            static_cast<off_t>(all_bytes_));
}

void Arena::restore() {
  for (const Saved& one : saved_)
    std::ranges::copy(one.bytes, base_ + one.offset);
  saved_.clear();
}

Arena::Whole Arena::whole_of(std::uint64_t offset, std::uint64_t bytes) {
  if (!is_small(bytes)) return {offset, round_up(bytes, kBlock), false};
  const std::uint64_t begin = offset / kBlock * kBlock;
  return {begin, round_up(offset + bytes, kBlock) - begin, true};
}

std::optional<std::uint64_t> Arena::allocate_blocks(std::uint64_t bytes) {
  const auto offset = take(free_blocks_, bytes);
  if (!offset) return std::nullopt;
  if (link_->call({.message = PacketType::kReserve, .bytes = bytes}).status == 1) return offset;
  give(free_blocks_, *offset, bytes);
  return std::nullopt;
}

void Arena::free_blocks(std::uint64_t offset, std::uint64_t bytes) {
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
  give(free_blocks_, offset, bytes);
  link_->send({.message = PacketType::kRelease, .bytes = bytes});
  // Memory that is free when this returns is free for every process.
  link_->call({.message = PacketType::kMemory});
}

std::optional<std::uint64_t> Arena::allocate(std::uint64_t bytes) {
  if (!is_small(bytes)) return allocate_blocks(round_up(bytes, kBlock));
  const std::uint64_t rounded = round_up(bytes, kSmallStep);
  if (const auto offset = take(free_small_, rounded)) return offset;
  const auto block = allocate_blocks(kBlock);
  if (!block) return std::nullopt;
  give(free_small_, *block, kBlock);
  return take(free_small_, rounded);
}

void Arena::free(std::uint64_t offset, std::uint64_t bytes) {
  if (!is_small(bytes)) return free_blocks(offset, round_up(bytes, kBlock));
  give(free_small_, offset, round_up(bytes, kSmallStep));
  // Blocks that nothing lies in any more go back.
  const auto range = std::prev(free_small_.upper_bound(offset));
  const std::uint64_t begin = round_up(range->first, kBlock);
  const std::uint64_t end = (range->first + range->second) / kBlock * kBlock;
  if (begin >= end) return;
  const auto [first, size] = *range;
  free_small_.erase(range);
  if (first < begin) free_small_[first] = begin - first;
  if (end < first + size) free_small_[end] = first + size - end;
  free_blocks(begin, end - begin);
}

}  // namespace regatta::standin
