#include "experimental/remote/internal/handshakes.h"

#include <arpa/inet.h>

namespace regatta::remote {
namespace {

constexpr std::size_t kPrefixBytes = 8;

std::string prefix_of(const std::string& address) {
  in6_addr parsed{};
  if (::inet_pton(AF_INET6, address.c_str(), &parsed) != 1) return address;
  if (IN6_IS_ADDR_V4MAPPED(&parsed)) return address;
  return {reinterpret_cast<const char*>(parsed.s6_addr), kPrefixBytes};
}

}  // namespace

bool Handshakes::begin(const std::string& address) {
  const MutexLock lock(mutex_);
  int& of_this = of_address_[prefix_of(address)];
  if (all_ >= kOfAllMax || of_this >= kOfAddressMax) return false;
  ++all_;
  ++of_this;
  return true;
}

void Handshakes::end(const std::string& address) {
  const MutexLock lock(mutex_);
  const auto at = of_address_.find(prefix_of(address));
  if (at == of_address_.end()) return;
  --all_;
  if (--at->second == 0) of_address_.erase(at);
}

}  // namespace regatta::remote
