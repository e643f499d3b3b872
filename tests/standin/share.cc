#include "tests/standin/share.h"

#include <algorithm>
#include <memory>

#include <sys/mman.h>
#include <unistd.h>

namespace regatta::standin {

ShareHandle show(DeviceState& device, std::uint64_t offset, std::uint64_t bytes) {
  const Arena::Whole whole = Arena::whole_of(offset, bytes);
  const Packet reply = device.link.call(
      {.message = PacketType::kShow, .sequence = whole.offset, .bytes = whole.bytes});
  return {.device = device.id,
          .share = reply.status == 1 ? reply.ticket : 0,
          .inner = offset - whole.offset,
          .bytes = bytes,
          .pid = static_cast<std::uint64_t>(getpid())};
}

bool may_free(DeviceState& device, std::uint64_t share, std::uint64_t offset, std::uint64_t bytes) {
  if (share == 0) return true;
  const bool keeps_bytes = Arena::whole_of(offset, bytes).is_shared;
  return device.link
             .call(
                 {.message = PacketType::kGiveUp, .ticket = share, .width = keeps_bytes ? 1U : 0U})
             .status != 1;
}

Opened open_share(const ShareHandle& ticket) {
  const auto& devices = process().devices;
  const auto at = std::ranges::find_if(
      devices, [&](const auto& device) { return device->id == ticket.device; });
  if (at == devices.end() || ticket.share == 0) return {};
  os::UniqueFd file;
  const Packet reply =
      (*at)->link.call({.message = PacketType::kOpenShare, .ticket = ticket.share}, &file);
  if (reply.status != 1 || !file) return {};
  void* const mapping = mmap(nullptr, reply.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                             static_cast<off_t>(reply.sequence));
  if (mapping == MAP_FAILED) return {};
  auto* const bytes = static_cast<std::byte*>(mapping);
  return {at->get(), ticket.share, bytes, reply.bytes, bytes + ticket.inner};
}

void close_share(const Opened& opened) {
  munmap(opened.mapping, opened.mapping_bytes);
  opened.device->link.send({.message = PacketType::kCloseShare, .ticket = opened.share});
}

int make_ticket_file(const ShareHandle& ticket) {
  const int file = memfd_create("standin ticket", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (write(file, &ticket, sizeof ticket) == sizeof ticket) return file;
  close(file);
  return -1;
}

ShareHandle read_ticket_file(int file) {
  ShareHandle ticket;
  return pread(file, &ticket, sizeof ticket, 0) == sizeof ticket ? ticket : ShareHandle{};
}

CUdeviceptr add_opened(const Opened& opened, std::uint64_t bytes, CUcontext context) {
  void* const range =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto address = reinterpret_cast<CUdeviceptr>(range);
  process().regions[address] = {.kind = RegionKind::kOpened,
                                .id = ++process().last_id,
                                .bytes = bytes,
                                .context = context,
                                .device = opened.device,
                                .opened = std::make_shared<const Opened>(opened),
                                .opens = 1};
  return address;
}

}  // namespace regatta::standin
