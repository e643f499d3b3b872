// login/internal/password_pool.h: hashes of passwords, which take long, in threads beside the loop.
#pragma once

#include <functional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/http/work_pool.h"

namespace regatta::login {

// The refusal of logins when too many wait.
inline constexpr const char* kTooManyLogins =
    "too many logins are checked at this moment; try later";

// Belongs to the loop's thread, where `done` of its calls runs; not after its destruction.
class PasswordPool {
 public:
  PasswordPool(http::EventLoop& loop, int threads);

  // kExhausted when too many wait already; then `done` is not called.
  Status hash(std::string password, std::function<void(Result<std::string>)> done);
  // An empty `hash`, as of a user that is not there, takes as long as another and is never right.
  Status verify(std::string hash, std::string password, std::function<void(bool)> done);

 private:
  http::WorkPool pool_;
};

}  // namespace regatta::login
