// tests/store/test_transactions.h: numbered transactions whose effect is a function of how many of
// them were committed, so that a reader knows whether a store holds all of each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

inline constexpr int kChangesEach = 4;
inline constexpr std::int64_t kJobsKept = 3;

// A value whose length differs from job to job, so that rows and pages are full at various places.
inline std::string job_value(std::int64_t number, std::size_t longest) {
  return fmt::format("{}:", number) +
         std::string(static_cast<std::size_t>(number * 7919) % (longest + 1), 'v');
}

inline std::string job_key(std::int64_t number) {
  return fmt::format("job/{:012}", number);
}

// Transaction `number` (from 1): writes its job, removes an older one, and sets two counters.
inline std::vector<Change> test_transaction(std::int64_t number, std::size_t longest) {
  const Revision first = kChangesEach * (number - 1) + 1;
  return {{"counter/a", first, std::to_string(number)},
          {job_key(number), first + 1, job_value(number, longest)},
          {job_key(number - kJobsKept), first + 2, std::nullopt},
          {"counter/b", first + 3, std::to_string(number)}};
}

// The number of transactions that the store holds. Fails where it holds a part of one.
inline Result<std::int64_t> count_transactions(Store& store, std::size_t longest) {
  std::int64_t jobs = 0;
  std::int64_t last = 0;
  std::string counters;
  REGATTA_TRY(revision, store.load([&](const Record& record) -> Status {
    const std::string key(record.key);
    const std::string value(record.value);
    if (key.starts_with("counter/")) {
      counters += value + " ";
      return {};
    }
    const std::int64_t number = std::stoll(key.substr(4));
    if (value != job_value(number, longest) || (jobs > 0 && number != last + 1) ||
        record.revision != kChangesEach * (number - 1) + 2)
      return Error{Code::kInvalidInput, key + ": is not as it was committed"};
    last = number;
    ++jobs;
    return {};
  }));
  const std::string expected = last == 0 ? "" : fmt::format("{} {} ", last, last);
  if (counters != expected || jobs != std::min(last, kJobsKept) || revision != kChangesEach * last)
    return Error{Code::kInvalidInput,
                 fmt::format("a part of a transaction: {} jobs up to {}, counters {}, revision {}",
                             jobs, last, counters, revision)};
  return last;
}

}  // namespace regatta::store
