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
  if (--own->second > 0) return;
  at->second.users.erase(own);
  if (at->second.owner != 0) return;
  if (at->second.users.empty()) {
    device_.release(user, at->second.bytes);
    shares_.erase(at);
  } else if (at->second.holder == user) {
    pass_on(at->second, user);
  }
}

void Shares::pass_on(Share& share, ClientId from) {
  share.owner = 0;
  share.holder = share.users.begin()->first;
  device_.move(from, share.holder, share.bytes);
}

bool Shares::give_up(ClientId owner, std::uint64_t id, bool keeps_bytes) {
  const auto at = shares_.find(id);
  if (at == shares_.end() || at->second.owner != owner) return false;
  if (at->second.users.empty()) {
    if (!keeps_bytes) shares_.erase(at);
    return false;
  }
  if (keeps_bytes) return true;
  pass_on(at->second, owner);
  return true;
}

void Shares::remove_client(ClientId client) {
  files_.erase(client);
  for (auto at = shares_.begin(); at != shares_.end();) {
    const auto entry = at++;
    Share& share = entry->second;
    share.users.erase(client);
    const bool has_bytes = share.owner == client || (share.owner == 0 && share.holder == client);
    if (!has_bytes) continue;
    if (share.users.empty())
      shares_.erase(entry);  // its bytes go with the client
    else
      pass_on(share, client);
  }
}

}  // namespace regatta::standin
