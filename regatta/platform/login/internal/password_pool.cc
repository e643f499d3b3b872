#include "regatta/platform/login/internal/password_pool.h"

#include <utility>

#include "regatta/platform/identity/secret.h"

namespace regatta::login {
namespace {

// The hash of no password.
constexpr const char* kNobodysHash =
    "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

}  // namespace

PasswordPool::PasswordPool(http::EventLoop& loop, int threads)
    : pool_(loop, {.threads = threads, .refusal = kTooManyLogins}) {}

Status PasswordPool::hash(std::string password, std::function<void(Result<std::string>)> done) {
  return pool_.run([password = std::move(password), done = std::move(done)] {
    return std::function<void()>([done, made = identity::hash_password(password)] { done(made); });
  });
}

Status PasswordPool::verify(std::string hash, std::string password,
                            std::function<void(bool)> done) {
  return pool_.run([hash = std::move(hash), password = std::move(password),
                    done = std::move(done)] {
    const bool is_right =
        identity::verify_password(hash.empty() ? kNobodysHash : hash, password) && !hash.empty();
    return std::function<void()>([done, is_right] { done(is_right); });
  });
}

}  // namespace regatta::login
