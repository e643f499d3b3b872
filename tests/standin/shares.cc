#include "tests/standin/shares.h"

#include <iterator>
#include <utility>

#include <fcntl.h>

namespace regatta::standin {

void Shares::add_file(ClientId client, os::UniqueFd file) {
  files_[client] = std::move(file);
}

std::uint64_t Shares::show(ClientId owner, std::uint64_t offset, std::uint64_t bytes) {
  const auto file = files_.find(owner);
  if (file == files_.end()) return 0;
  for (const auto& [id, share] : shares_)
    if (share.owner == owner && share.offset == offset && share.bytes == bytes) return id;
  Share& share = shares_[++last_id_];
  share.owner = owner;
  share.offset = offset;
  share.bytes = bytes;
  share.file.reset(fcntl(file->second.get(), F_DUPFD_CLOEXEC, 0));
  return last_id_;
}

const Share* Shares::open(ClientId user, std::uint64_t id) {
  const auto at = shares_.find(id);
  if (at == shares_.end()) return nullptr;
  ++at->second.users[user];
  return &at->second;
}

void Shares::close(ClientId user, std::uint64_t id) {
  const auto at = shares_.find(id);
  if (at == shares_.end()) return;
  const auto own = at->second.users.find(user);
  if (own == at->second.users.end()) return;
  if (--own->second == 0) at->second.users.erase(own);
  drop_if_unused(at);
}

void Shares::drop_if_unused(std::map<std::uint64_t, Share>::iterator share) {
  if (share->second.owner != 0 || !share->second.users.empty()) return;
  device_.release_disowned(share->second.bytes);
  shares_.erase(share);
}

bool Shares::give_up(ClientId owner, std::uint64_t id, bool keeps_bytes) {
  const auto at = shares_.find(id);
  if (at == shares_.end() || at->second.owner != owner) return false;
  if (at->second.users.empty()) {
    if (!keeps_bytes) shares_.erase(at);
    return false;
  }
  if (keeps_bytes) return true;
  device_.disown(owner, at->second.bytes);
  at->second.owner = 0;
  return true;
}

void Shares::remove_client(ClientId client) {
  files_.erase(client);
  for (auto at = shares_.begin(); at != shares_.end();) {
    const auto share = at++;
    const bool was_used = share->second.users.erase(client) > 0;
    if (share->second.owner == client) {
      if (share->second.users.empty()) {
        shares_.erase(share);
        continue;
      }
      device_.disown(client, share->second.bytes);
      share->second.owner = 0;
    } else if (was_used) {
      drop_if_unused(share);
    }
  }
}

}  // namespace regatta::standin
