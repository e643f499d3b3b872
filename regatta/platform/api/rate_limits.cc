#include "regatta/platform/api/rate_limits.h"

#include <algorithm>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace regatta::api {

double TokenBuckets::tokens_at(const Bucket& bucket, Seconds now) const {
  return std::min(limit_.burst, bucket.tokens + (now - bucket.last).value * limit_.per_second);
}

Seconds TokenBuckets::take(const std::string& key, Seconds now) {
  if (limit_.per_second <= 0) return Seconds{0};
  if (buckets_.size() >= keys_max_ && !buckets_.contains(key)) {
    // A full bucket says the same as none.
    std::erase_if(buckets_,
                  [&](const auto& entry) { return tokens_at(entry.second, now) >= limit_.burst; });
  }
  const bool has_room = buckets_.size() < keys_max_ || buckets_.contains(key);
  const auto [found, is_new] =
      buckets_.try_emplace(has_room ? key : std::string(), Bucket{limit_.burst, now});
  Bucket& bucket = found->second;
  bucket.tokens = tokens_at(bucket, now);
  bucket.last = now;
  if (bucket.tokens < 1) return Seconds{(1 - bucket.tokens) / limit_.per_second};
  bucket.tokens -= 1;
  return Seconds{0};
}

std::string network_of(const std::string& address) {
  in6_addr bytes{};
  if (::inet_pton(AF_INET6, address.c_str(), &bytes) != 1) return address;
  constexpr std::size_t kPrefixBytes = 8;
  std::string prefix;
  for (std::size_t i = 0; i < kPrefixBytes; ++i)
    prefix += fmt::format("{}{:02x}", i > 0 && i % 2 == 0 ? ":" : "", bytes.s6_addr[i]);
  return prefix;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

}  // namespace regatta::api
