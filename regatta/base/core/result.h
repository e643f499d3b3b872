// core/result.h: `Result<T>` and `Status` instead of exceptions, and checks of invariants.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <tl/expected.hpp>

namespace regatta {

// Result<T> is a value or one Error that cannot be ignored: a thin class over tl::expected with the
// names of std::expected (C++23), which will replace it.

// The kinds of errors. exit_status() gives the exit status of a command or agent.
enum class Code {
  kInvalidInput,  // the caller's file, flag or argument is wrong
  kNotFound,      // the named object does not exist
  kConflict,      // the object is in a state that forbids the request
  kExhausted,     // a resource is used up
  kUnavailable,   // a peer, server or device is gone or unreachable; any other system error
  kTimeout,       // no progress within the stated time
  kUnsupported,   // this machine or build cannot do it, it comes later, or it is not allowed
};

// One sentence: the object, what is wrong, then the remedy where there is one; lower case, no full
// stop.
struct Error {
  Code code = Code::kUnavailable;
  std::string message;
};

// 2, the input is wrong: kInvalidInput, kUnsupported. 1, the work failed: the rest.
inline int exit_status(const Error& error) {
  return error.code == Code::kInvalidInput || error.code == Code::kUnsupported ? 2 : 1;
}

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Implicit, so that a function can `return value;` and `return Error{...};`.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : expected_(std::move(value)) {}
  Result(Error error) : expected_(tl::unexpected<Error>(std::move(error))) {}
  Result(tl::expected<T, Error> expected) : expected_(std::move(expected)) {}
  // NOLINTEND(google-explicit-constructor)

  bool has_value() const { return expected_.has_value(); }
  explicit operator bool() const { return has_value(); }
  T& value() & { return *expected_; }
  const T& value() const& { return *expected_; }
  T&& value() && { return std::move(*expected_); }
  T& operator*() & { return *expected_; }
  const T& operator*() const& { return *expected_; }
  T&& operator*() && { return std::move(*expected_); }
  T* operator->() { return &*expected_; }
  const T* operator->() const { return &*expected_; }
  const Error& error() const { return expected_.error(); }

  template <typename U>
  T value_or(U&& fallback) const& {
    return expected_.value_or(std::forward<U>(fallback));
  }

  // Calls `next(value)`, which returns some Result<U>, or passes the error on.
  template <typename F>
  auto and_then(F&& next) && -> std::invoke_result_t<F, T&&> {
    if (!has_value()) return error();
    return std::forward<F>(next)(std::move(*expected_));
  }

 private:
  tl::expected<T, Error> expected_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Result(Error error) : expected_(tl::unexpected<Error>(std::move(error))) {}

  bool has_value() const { return expected_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return expected_.error(); }

 private:
  tl::expected<void, Error> expected_;
};

// An action that can fail and returns nothing.
using Status = Result<void>;

}  // namespace regatta

#define REGATTA_CONCAT_INNER(a, b) a##b
#define REGATTA_CONCAT(a, b) REGATTA_CONCAT_INNER(a, b)

// Declares `name` with the value of the Result `expression`, or returns its error.
#define REGATTA_TRY(name, expression)                  \
  auto REGATTA_CONCAT(name, _or_error) = (expression); \
  if (!REGATTA_CONCAT(name, _or_error).has_value())    \
    return REGATTA_CONCAT(name, _or_error).error();    \
  auto name = std::move(*REGATTA_CONCAT(name, _or_error))

// Returns the error of the Result or Status `expression`, if there is one.
#define REGATTA_TRY_DO(expression)                                       \
  do {                                                                   \
    if (auto regatta_status = (expression); !regatta_status.has_value()) \
      return regatta_status.error();                                     \
  } while (false)

namespace regatta {

// REGATTA_CHECK names a bug in regatta, never bad input; it stays on in every build.

// Prints the broken condition and its place to standard error, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace regatta

#define REGATTA_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::regatta::check_failed(#condition, __FILE__, __LINE__))
