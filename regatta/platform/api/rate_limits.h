// api/rate_limits.h: how many requests a user or an address may send: token buckets. Pure.
// Source: Turner, "New directions in communications", IEEE Communications Magazine 24(10), 1986.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "regatta/base/core/units.h"

namespace regatta::api {

// A bucket holds `burst` tokens and gains `per_second`; each request takes one.
struct RateLimit {
  double per_second = 0;  // 0: no limit
  double burst = 1;
};

// Operators, admins and clients of this machine are not limited: they are trusted with all of it.
struct RateLimits {
  RateLimit user{.per_second = 1000, .burst = 5000};
  // For requests without a known user: logins, files of the page, refused tokens.
  RateLimit address{.per_second = 50, .burst = 1000};
  bool has_loopback = false;  // clients of this machine too, as behind a proxy
};

class TokenBuckets {
 public:
  // Holds `keys_max` keys at most; more than that share one bucket.
  explicit TokenBuckets(RateLimit limit, std::size_t keys_max = 50'000)
      : limit_(limit), keys_max_(keys_max) {}

  // 0: a token was taken; else how long until there is one. `now`: of a monotonic clock.
  Seconds take(const std::string& key, Seconds now);
  std::size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = 0;
    Seconds last;
  };
  double tokens_at(const Bucket& bucket, Seconds now) const;

  RateLimit limit_;
  std::size_t keys_max_;
  std::unordered_map<std::string, Bucket> buckets_;
};

// The address as far as one client may choose it: an IPv4 address, or the first 64 bits in IPv6.
std::string network_of(const std::string& address);
bool is_loopback(const std::string& address);

}  // namespace regatta::api
