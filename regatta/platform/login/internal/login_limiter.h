// login/internal/login_limiter.h: slows down those who guess, by user and by address. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "regatta/base/core/units.h"

namespace regatta::login {

// Each failure beyond the free ones doubles the pause after it, up to `pause_max`. A try counts as
// a failure until succeed(), so that many at once are no way around. A key is forgotten after
// `forget_after` without a try.
struct LoginLimits {
  int free = 3;
  Seconds pause{1};
  Seconds pause_max{30};
  Seconds forget_after{900};
  std::size_t keys_max = 20'000;  // beyond it keys that wait for nothing are forgotten first
};

class LoginLimiter {
 public:
  explicit LoginLimiter(LoginLimits limits) : limits_(limits) {}

  // How long `key` has to wait at `now`; 0: it may try. Changes nothing.
  Seconds wait(const std::string& key, Seconds now) const;
  void count_try(const std::string& key, Seconds now);
  void succeed(const std::string& key) { tries_.erase(key); }
  std::size_t size() const { return tries_.size(); }

 private:
  struct Tries {
    int count = 0;
    Seconds last;
    Seconds until;  // the next try is refused before
  };
  void make_room(Seconds now);

  LoginLimits limits_;
  std::unordered_map<std::string, Tries> tries_;
};

}  // namespace regatta::login
