#include "regatta/platform/login/internal/login_limiter.h"

#include <algorithm>
#include <cmath>

namespace regatta::login {

Seconds LoginLimiter::wait(const std::string& key, Seconds now) const {
  const auto found = tries_.find(key);
  if (found == tries_.end()) return Seconds{0};
  return std::max(Seconds{0}, found->second.until - now);
}

void LoginLimiter::count_try(const std::string& key, Seconds now) {
  if (tries_.size() >= limits_.keys_max && !tries_.contains(key)) make_room(now);
  Tries& tries = tries_[key];
  if (now - tries.last > limits_.forget_after) tries.count = 0;
  tries.last = now;
  const int beyond = ++tries.count - limits_.free;
  if (beyond < 0) return;
  const double doubled = limits_.pause.value * std::exp2(std::min(beyond, 30));
  tries.until = now + std::min(Seconds{doubled}, limits_.pause_max);
}

void LoginLimiter::make_room(Seconds now) {
  std::erase_if(tries_, [&](const auto& entry) { return entry.second.until <= now; });
  // All of them wait: an attack from so many addresses is slow at any of them.
  if (tries_.size() >= limits_.keys_max) tries_.erase(tries_.begin());
}

}  // namespace regatta::login
